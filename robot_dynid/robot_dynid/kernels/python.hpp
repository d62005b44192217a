// Arguments of kernels as they come from Python, without a library: arrays by their buffers.

#pragma once

#include <Python.h>

#include <new>
#include <optional>
#include <string>

#include "array.hpp"

namespace robot_dynid {

/// What a kernel cannot use; becomes a TypeError.
struct Unusable {
    std::string reason;
};

template <class T>
struct Argument;

template <>
struct Argument<double> {
    static double read(PyObject* given) {
        const double value = PyFloat_AsDouble(given);
        if (value == -1.0 && PyErr_Occurred()) throw Unusable{"a number is expected"};
        return value;
    }
};

template <>
struct Argument<Index> {
    static Index read(PyObject* given) {
        const Index value = PyLong_AsLongLong(given);
        if (value == -1 && PyErr_Occurred()) throw Unusable{"a whole number is expected"};
        return value;
    }
};

template <class T, int N>
struct Argument<View<T, N>> {
    static View<T, N> read(PyObject* given) {
        Py_buffer buffer;
        if (PyObject_GetBuffer(given, &buffer, PyBUF_STRIDES | PyBUF_FORMAT) != 0) {
            throw Unusable{"an array is expected"};
        }
        std::array<Index, N> sizes{}, strides{};
        bool fits = buffer.ndim == N && buffer.itemsize == sizeof(T) && is_kind(buffer.format);
        Index step = 1;
        for (int i = N - 1; fits && i >= 0; --i) {
            const Index bytes = step * Index(sizeof(T));
            fits = buffer.shape[i] < 2 || buffer.len == 0 || buffer.strides[i] == bytes;
            sizes[i] = buffer.shape[i];
            strides[i] = step;
            step *= buffer.shape[i];
        }
        T* data = static_cast<T*>(buffer.buf);
        const std::string found =
            std::string(buffer.format) + " of " + std::to_string(buffer.ndim) + " dimensions";
        PyBuffer_Release(&buffer);  // whoever calls holds the array
        if (!fits) {
            throw Unusable{"a C-contiguous array of " + std::to_string(N) + " dimensions of " +
                           name() + " is expected, not " + found};
        }
        return View<T, N>(data, sizes, strides);
    }

private:
    static std::string name() {
        return std::is_same_v<T, double> ? "float64" : std::is_same_v<T, bool> ? "bool" : "int64";
    }
    static bool is_kind(const char* format) {
        if constexpr (std::is_same_v<T, double>) return format[0] == 'd';
        if constexpr (std::is_same_v<T, bool>) return format[0] == '?';
        return format[0] == 'l' || format[0] == 'q';
    }
};

template <class... Parts>
struct Argument<std::tuple<Parts...>> {
    static std::tuple<Parts...> read(PyObject* given) {
        if (!PyTuple_Check(given) || PyTuple_GET_SIZE(given) != Py_ssize_t(sizeof...(Parts))) {
            throw Unusable{"a tuple of " + std::to_string(sizeof...(Parts)) + " is expected"};
        }
        return [&]<std::size_t... I>(std::index_sequence<I...>) {
            return std::tuple<Parts...>{Argument<Parts>::read(PyTuple_GET_ITEM(given, I))...};
        }(std::index_sequence_for<Parts...>());
    }
};

template <class T>
struct Argument<std::optional<T>> {
    static std::optional<T> read(PyObject* given) {
        if (given == Py_None) return std::nullopt;
        return Argument<T>::read(given);
    }
};

/// Call a kernel with Python's arguments, other threads free to run meanwhile.
template <auto KERNEL, class... Arguments>
PyObject* call(PyObject*, PyObject* const* given, Py_ssize_t count) {
    try {
        if (count != Py_ssize_t(sizeof...(Arguments))) {
            throw Unusable{std::to_string(sizeof...(Arguments)) + " arguments are expected"};
        }
        auto arguments = [&]<std::size_t... I>(std::index_sequence<I...>) {
            return std::tuple<Arguments...>{Argument<Arguments>::read(given[I])...};
        }(std::index_sequence_for<Arguments...>());
        PyThreadState* thread = PyEval_SaveThread();
        try {
            const Scope scope;
            std::apply(KERNEL, arguments);
        } catch (...) {
            PyEval_RestoreThread(thread);
            throw;
        }
        PyEval_RestoreThread(thread);
    } catch (const Unusable& unusable) {
        PyErr_SetString(PyExc_TypeError, unusable.reason.c_str());
        return nullptr;
    } catch (const std::bad_alloc&) {
        return PyErr_NoMemory();
    }
    Py_RETURN_NONE;
}

}  // namespace robot_dynid
