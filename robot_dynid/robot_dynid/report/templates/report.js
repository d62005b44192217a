'use strict';
// Draws the figures of the page in the colours of its theme, and keeps linked axes together.
(() => {
  const root = document.documentElement;
  const narrow = () => window.innerWidth <= 720;
  const figures = JSON.parse(document.getElementById('figures').textContent);
  const plots = [...document.querySelectorAll('.plot')].map((box, i) => (
    {box, spec: unpacked(figures[i].spec), link: figures[i].link, drawn: false}));
  for (const plot of plots) if (plot.link) plot.box.dataset.link = plot.link;
  const PAPER_HEIGHT = 0.68;  // of a figure, over that on a screen
  const ranges = {};  // of linked axes, by the name of the link
  let following = false;

  function unpacked(value) {
    if (Array.isArray(value)) return value.map(unpacked);
    if (value === null || typeof value !== 'object') return value;
    if (typeof value.packed === 'string') {
      const bytes = Uint8Array.from(atob(value.packed), (c) => c.charCodeAt(0));
      return new Float32Array(bytes.buffer);
    }
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, unpacked(one)]));
  }

  // ---- theme
  const system = window.matchMedia('(prefers-color-scheme: dark)');
  const button = document.getElementById('theme');
  let chosen = null;
  try { chosen = localStorage.getItem('robot_dynid theme'); } catch (error) { /* a file */ }
  let printing = false;

  function theme() { return printing ? 'light' : chosen || (system.matches ? 'dark' : 'light'); }

  function dress() {
    root.dataset.theme = theme();
    button.textContent = theme() === 'dark' ? 'Light' : 'Dark';
    for (const plot of plots) if (plot.drawn) draw(plot);
  }

  button.hidden = false;
  button.addEventListener('click', () => {
    chosen = theme() === 'dark' ? 'light' : 'dark';
    try { localStorage.setItem('robot_dynid theme', chosen); } catch (error) { /* a file */ }
    dress();
  });
  system.addEventListener('change', dress);
  root.dataset.theme = theme();
  button.textContent = theme() === 'dark' ? 'Light' : 'Dark';

  // ---- figures
  function colour(name, style) {
    const [own, opacity] = name.split('/');
    const found = style.getPropertyValue('--' + own).trim();
    if (!opacity) return found;
    const [r, g, b] = [1, 3, 5].map((k) => parseInt(found.slice(k, k + 2), 16));
    return `rgba(${r}, ${g}, ${b}, ${opacity / 100})`;
  }

  function coloured(value, style) {
    if (typeof value === 'string') {
      return value[0] === '@' ? colour(value.slice(1), style) : value;
    }
    if (Array.isArray(value)) return value.map((one) => coloured(one, style));
    if (value === null || typeof value !== 'object' || ArrayBuffer.isView(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([key, one]) => [key, coloured(one, style)]));
  }

  function styled(plot, style) {
    const of = (name) => style.getPropertyValue('--' + name).trim();
    const {data, layout} = coloured(plot.spec, style);
    const axis = {gridcolor: of('faint'), zerolinecolor: of('line'), linecolor: of('line'),
      automargin: true, title: {standoff: 8}};
    if (narrow() && data.some((one) => ArrayBuffer.isView(one.x))) axis.nticks = 5;
    const map = narrow() && data.find((one) => one.type === 'heatmap' && one.x.length > 30);
    if (map) layout.xaxis = {...layout.xaxis, showticklabels: false};
    if (narrow() && layout.annotations) {
      layout.annotations = layout.annotations.filter((one) => one.name !== 'wide');
    }
    const found = {
      height: 280, hovermode: 'x unified', dragmode: narrow() ? false : 'zoom', uirevision: 1,
      barmode: 'group', bargap: 0.35, separators: '. ', ...layout,
      margin: {l: narrow() ? 44 : 60, r: 10, t: 34, b: 44, ...layout.margin},
      paper_bgcolor: of('paper'), plot_bgcolor: of('paper'),
      font: {family: getComputedStyle(document.body).fontFamily, size: printing ? 9 : narrow() ? 11 : 12,
        color: of('soft')},
      hoverlabel: {bgcolor: of('paper'), bordercolor: of('line'), font: {color: of('ink')}},
      legend: {orientation: 'h', x: 0, y: 1, yanchor: 'bottom', yref: 'paper',
        ...layout.legend},
      modebar: {bgcolor: of('paper'), color: of('measured'), activecolor: of('ink')},
    };
    for (const [key, own] of Object.entries(layout)) {
      if (/^[xy]axis/.test(key)) {
        found[key] = {...axis, ...own, title: {...axis.title, ...(own.title || {})}};
      }
      if (key === 'scene') {
        const solid = {gridcolor: of('line'), zerolinecolor: of('line'), showbackground: false,
          color: of('soft')};
        found.scene = {...own, bgcolor: of('paper')};
        for (const name of ['xaxis', 'yaxis', 'zaxis']) {
          found.scene[name] = {...solid, ...(own[name] || {})};
        }
      }
    }
    if (plot.link && ranges[plot.link] && found.xaxis) {
      found.xaxis = {...found.xaxis, range: ranges[plot.link].slice(), autorange: false};
    }
    return {data, layout: found};
  }

  function draw(plot) {
    const {data, layout} = styled(plot, getComputedStyle(root));
    layout.height = Math.round(layout.height * (printing ? PAPER_HEIGHT : 1));
    plot.box.style.height = `${layout.height}px`;
    if (printing) layout.width = plot.box.clientWidth;  // paper waits for no second drawing
    const config = {displaylogo: false, responsive: true, displayModeBar: !narrow()};
    if (!layout.scene) {
      config.modeBarButtons = [['zoom2d', 'pan2d', 'zoomIn2d', 'zoomOut2d', 'resetScale2d',
        'toImage']];
    }
    const done = Plotly.react(plot.box, data, layout, config);
    if (!plot.drawn && plot.link) plot.box.on('plotly_relayout', (change) => follow(plot, change));
    plot.drawn = true;
    return done;
  }

  // The event of one axis moves those of all figures with the same link.
  function follow(source, change) {
    const own = source.box.layout.xaxis;
    if (following || !Object.keys(change).some((key) => key.startsWith('xaxis'))) return;
    ranges[source.link] = own.autorange ? null : own.range.slice();
    const wanted = own.autorange ? {'xaxis.autorange': true} : {'xaxis.range': own.range.slice()};
    following = true;
    const others = plots.filter((p) => p !== source && p.link === source.link && p.drawn);
    Promise.all(others.map((p) => Plotly.relayout(p.box, wanted)))
      .finally(() => { following = false; });
  }

  const shown = (plot) => plot.box.offsetParent !== null;
  const pause = () => new Promise((go) => setTimeout(go, 0));

  async function drawShown() {
    for (const plot of plots) {
      if (plot.drawn || !shown(plot)) continue;
      await draw(plot);
      await pause();
    }
  }

  async function plotly() {
    const packed = document.getElementById('plotly').textContent;
    const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
    const script = document.createElement('script');
    script.textContent = await new Response(stream).text();
    document.head.append(script);
  }

  async function start() {
    if (plots.length) {
      if (!('DecompressionStream' in window)) {
        plots.forEach((p) => { p.box.textContent = 'The curves need a browser of 2023 or later.'; });
        return;
      }
      await plotly();
      await drawShown();
    }
    root.dataset.drawn = 'all';
  }

  for (const part of document.querySelectorAll('details')) {
    part.addEventListener('toggle', () => { if (part.open && window.Plotly) drawShown(); });
  }

  // ---- a window that becomes as narrow as a phone, or a phone that is turned
  let slim = narrow();
  window.addEventListener('resize', () => {
    if (printing || slim === narrow()) return;
    slim = narrow();
    dress();
  });

  // ---- paper is white, and narrower than a screen
  const resized = () => plots.filter((p) => p.drawn && shown(p)).forEach(
    (p) => Plotly.Plots.resize(p.box));
  window.addEventListener('beforeprint', () => {
    printing = true;
    root.dataset.paper = '';
    dress();
    resized();
  });
  window.addEventListener('afterprint', () => {
    printing = false;
    delete root.dataset.paper;
    dress();
    resized();
  });

  for (const copy of document.querySelectorAll('.copy')) {
    copy.addEventListener('click', async () => {
      await navigator.clipboard.writeText(copy.parentElement.querySelector('code').textContent);
      copy.textContent = 'Copied';
      setTimeout(() => { copy.textContent = 'Copy'; }, 1500);
    });
  }

  start();
})();
