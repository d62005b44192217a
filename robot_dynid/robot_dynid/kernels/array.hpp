// Views of arrays, and the memory of a kernel.

#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace robot_dynid {

using Index = std::int64_t;
constexpr double NaN = std::numeric_limits<double>::quiet_NaN();

/// Array of N dimensions in memory of another owner.
///
/// The last dimension is contiguous; LAST is its length where the compiler knows it, else 0.
/// Assigning a number fills the elements, assigning a view copies them.
template <class T, int N, Index LAST = 0>
struct View {
    T* data;
    std::array<Index, N> sizes;
    std::array<Index, N> strides;  // of the first N - 1 dimensions, elements

    View(T* data, std::array<Index, N> sizes, std::array<Index, N> strides)
        : data(data), sizes(sizes), strides(strides) {}
    View(const View&) = default;

    Index shape(int dimension) const {
        if constexpr (LAST > 0) {
            if (dimension == N - 1) return LAST;
        }
        return sizes[dimension];
    }

    template <int D>
    Index stride() const {
        if constexpr (D == N - 1) {
            return 1;
        } else if constexpr (D == N - 2 && LAST > 0) {
            return LAST;
        } else {
            return strides[D];
        }
    }

    template <int D, class First, class... Rest>
    Index offset(First first, Rest... rest) const {
        Index at = Index(first) * stride<D>();
        if constexpr (sizeof...(rest) > 0) at += offset<D + 1>(rest...);
        return at;
    }

    /// Return an element, or with fewer indices than dimensions a view of the others.
    template <class... Indices>
    decltype(auto) operator()(Indices... indices) const {
        constexpr int given = sizeof...(indices);
        if constexpr (given == N) {
            return static_cast<T&>(data[offset<0>(indices...)]);
        } else {
            std::array<Index, N - given> less, steps;
            for (int i = 0; i < N - given; ++i) {
                less[i] = sizes[i + given];
                steps[i] = strides[i + given];
            }
            return View<T, N - given, LAST>(data + offset<0>(indices...), less, steps);
        }
    }

    /// Return the rows from ``begin`` to before ``end``, as far as there are such.
    auto part(Index begin, Index end) const {
        begin = std::min(begin, shape(0));
        View<T, N, N == 1 ? 0 : LAST> other(data + begin * stride<0>(), sizes, strides);
        other.sizes[0] = std::min(end, shape(0)) - begin;
        return other;
    }
    auto from(Index begin) const { return part(begin, shape(0)); }
    auto to(Index end) const { return part(0, end); }

    /// Return what is at ``index`` of the second dimension, of three or more.
    auto column(Index index) const
        requires(N > 2)
    {
        std::array<Index, N - 1> less, steps;
        for (int i = 0, d = 0; d < N; ++d) {
            if (d == 1) continue;
            less[i] = sizes[d];
            steps[i++] = d == N - 2 ? stride<N - 2>() : strides[d];
        }
        return View<T, N - 1>(data + index * stride<1>(), less, steps);
    }

    /// Return the numbers (n,) as a matrix (n, 1).
    View<T, 2, 1> as_column() const
        requires(N == 1)
    {
        return View<T, 2, 1>(data, {shape(0), 1}, {1, 1});
    }

    /// Return the rows from the last to the first.
    View<T, N> reversed() const
        requires(N > 1)
    {
        View<T, N> other(data + (shape(0) - 1) * stride<0>(), sizes, strides);
        other.strides[0] = -stride<0>();
        return other;
    }

    /// Elements by their number along all dimensions.
    template <class F>
    void each(F f) const {
        if constexpr (N == 1) {
            for (Index i = 0; i < shape(0); ++i) f(data[i]);
        } else {
            for (Index i = 0; i < shape(0); ++i) (*this)(i).each(f);
        }
    }

    const View& operator=(double value) const {
        each([value](T& element) { element = T(value); });
        return *this;
    }
    const View& operator=(const View& other) const { return copied(other); }
    template <Index OTHER>
    const View& operator=(const View<T, N, OTHER>& other) const {
        return copied(other);
    }

    template <class Other>
    const View& copied(const Other& other) const {
        for (Index i = 0; i < shape(0); ++i) (*this)(i) = other(i);
        return *this;
    }

    T max() const {
        T largest = (*this).data[0];
        each([&largest](T& element) { largest = element > largest ? element : largest; });
        return largest;
    }
};

/// Memory of this thread for arrays of kernels, given back at the end of a Scope.
class Memory {
public:
    static Memory& of_thread() {
        thread_local Memory memory;
        return memory;
    }

    template <class T>
    T* take(Index count) {
        const std::size_t bytes = (std::max<Index>(count, 1) * sizeof(T) + LINE - 1) / LINE * LINE;
        while (block_ < blocks_.size() && used_ + bytes > blocks_[block_].size) {
            ++block_;
            used_ = 0;
        }
        if (block_ == blocks_.size()) {
            const std::size_t size = std::max<std::size_t>(bytes, BLOCK);
            void* data = std::aligned_alloc(LINE, size);
            if (data == nullptr) throw std::bad_alloc();
            blocks_.push_back({std::unique_ptr<void, Free>(data), size});
        }
        T* data = reinterpret_cast<T*>(static_cast<char*>(blocks_[block_].data.get()) + used_);
        used_ += bytes;
        return data;
    }

private:
    friend class Scope;

    /// Give back all but one block of the usual size.
    void trim() {
        if (blocks_.size() > 1) blocks_.resize(1);
        if (!blocks_.empty() && blocks_[0].size > BLOCK) blocks_.clear();
    }

    static constexpr std::size_t LINE = 64, BLOCK = 1 << 20;  // bytes
    struct Free {
        void operator()(void* data) const { std::free(data); }
    };
    struct Block {
        std::unique_ptr<void, Free> data;
        std::size_t size;
    };
    std::vector<Block> blocks_;
    std::size_t block_ = 0, used_ = 0;
};

/// Arrays made while it lives are gone at its end.
class Scope {
public:
    Scope() : memory_(Memory::of_thread()), block_(memory_.block_), used_(memory_.used_) {}
    ~Scope() {
        memory_.block_ = block_, memory_.used_ = used_;
        if (block_ == 0 && used_ == 0) memory_.trim();
    }
    Scope(const Scope&) = delete;

private:
    Memory& memory_;
    std::size_t block_, used_;
};

template <class T, int N, Index LAST = 0, class... Sizes>
View<T, N, LAST> new_array(Sizes... sizes) {
    const std::array<Index, N> all{Index(sizes)...};
    std::array<Index, N> strides;
    Index count = 1;
    for (int i = N - 1; i >= 0; --i) {
        strides[i] = count;
        count *= all[i];
    }
    return View<T, N, LAST>(Memory::of_thread().take<T>(count), all, strides);
}

template <class T, int N, Index LAST = 0, class... Sizes>
View<T, N, LAST> new_zeros(Sizes... sizes) {
    auto made = new_array<T, N, LAST>(sizes...);
    made = 0.0;
    return made;
}

template <class T, int N, Index LAST = 0, class... Sizes>
View<T, N, LAST> new_ones(Sizes... sizes) {
    auto made = new_array<T, N, LAST>(sizes...);
    made = 1.0;
    return made;
}

template <class T, int N, Index LAST>
View<T, N, LAST> new_array_like(const View<T, N, LAST>& other) {
    return std::apply([](auto... sizes) { return new_array<T, N, LAST>(sizes...); }, other.sizes);
}

template <class T, int N, Index LAST>
View<T, N, LAST> new_zeros_like(const View<T, N, LAST>& other) {
    auto made = new_array_like(other);
    made = 0.0;
    return made;
}

/// Return a copy (n,) of a column of a matrix (n, m).
template <class T, Index LAST>
View<T, 1> column_of(const View<T, 2, LAST>& matrix, Index column) {
    auto made = new_array<T, 1>(matrix.shape(0));
    for (Index i = 0; i < matrix.shape(0); ++i) made(i) = matrix(i, column);
    return made;
}

/// Return the differences (n - 1,) of neighbours.
template <class T>
View<T, 1> differences(const View<T, 1>& values) {
    auto made = new_array<T, 1>(values.shape(0) - 1);
    for (Index i = 0; i < made.shape(0); ++i) made(i) = values(i + 1) - values(i);
    return made;
}

/// Return the indices of the numbers that are not zero.
inline View<Index, 1> nonzero(const View<double, 1>& values) {
    auto made = new_array<Index, 1>(values.shape(0));
    Index count = 0;
    for (Index i = 0; i < values.shape(0); ++i) {
        if (values(i) != 0.0) made(count++) = i;
    }
    return made.to(count);
}

/// Return the first elements of a tuple.
template <int COUNT, class... Elements>
auto first(const std::tuple<Elements...>& all) {
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return std::make_tuple(std::get<I>(all)...);
    }(std::make_index_sequence<COUNT>());
}

inline double square(double value) { return value * value; }
inline double sign(double value) { return value > 0.0 ? 1.0 : value < 0.0 ? -1.0 : value; }
template <class T>
T min_of(T a, T b) {
    return b < a ? b : a;
}
template <class T>
T max_of(T a, T b) {
    return b > a ? b : a;
}

}  // namespace robot_dynid
