// The engine at work: what sluice top shows, once a second while somebody looks.

import { inside } from './api.js';
import { byId, draw, el } from './dom.js';
import { bytes, duration, percent, rate } from './figures.js';
import { between } from './looks.js';

const every = 1000; // milliseconds
const kept = 120; // looks that the charts show

// causes are what a device waits for, in words; the order is that of the chart, from the bottom up.
const causes = [
  ['computing', 'computing'], ['sampler', 'sampler'], ['mask', 'grammars'], ['scheduler', 'scheduler'], ['kv', 'KV blocks'],
  ['expert', 'an expert'], ['reader', 'the disk'], ['pool', 'memory to read into'], ['uploader', 'packing weights'], ['credit', 'slow clients'],
  ['other_model', 'another model'], ['host', 'the program'], ['launch', 'launching'],
  ['loading', 'loading'], ['restart', 'a restart'], ['unknown', 'unknown'],
  ['no_work', 'nobody asks'],
];

export class Engine {
  constructor(refused) {
    this.refused = refused;
    this.root = byId('engine');
    this.history = [];
    this.timer = 0;
    document.addEventListener('visibilitychange', () => this.pace());
  }

  open(shown) {
    this.root.hidden = !shown;
    if (shown && !this.history.length) this.root.replaceChildren(el('p', { class: 'quiet waiting' }, 'Looking…'));
    this.pace();
  }

  pace() {
    clearTimeout(this.timer);
    this.timer = 0;
    if (!this.root.hidden && !document.hidden) this.look();
  }

  async look() {
    try {
      const now = await inside();
      const seen = between(this.before, now);
      if (this.before && now.uptime_seconds < this.before.uptime_seconds) this.history = [];
      if (this.before) this.history.push(seen);
      this.history = this.history.slice(-kept);
      this.before = now;
      this.silent = null;
      this.show(seen);
    } catch (e) {
      this.silent = e;
      if (e.status === 401) this.refused(e, () => this.pace());
      this.show(this.history.at(-1));
    }
    clearTimeout(this.timer);
    if (!this.root.hidden && !document.hidden && this.silent?.status !== 401) {
      this.timer = setTimeout(() => this.look(), every);
    }
  }

  show(seen) {
    const silent = this.silent && el('p', { class: 'problem', role: 'alert' }, this.silent.message);
    if (!seen) {
      this.root.replaceChildren(el('h1', {}, 'Engine'), silent ?? '');
      return;
    }
    const top = this.root.scrollTop;
    const table = this.root.querySelector('.actors');
    const aside = table?.scrollLeft ?? 0;
    const focused = this.root.contains(document.activeElement) ? document.activeElement.className : '';
    this.root.replaceChildren(
      el('header', { class: 'engine-head' }, el('h1', {}, 'Engine'),
        el('p', { class: 'quiet' }, el('span', { class: silent ? 'dot off' : 'dot' }), ` up ${duration(seen.uptime)}`)),
      silent ?? '', ...this.sections(seen));
    this.root.scrollTop = top;
    const again = this.root.querySelector('.actors');
    again.scrollLeft = aside;
    if (focused && again.className === focused) again.focus({ preventScroll: true });
  }

  sections(seen) {
    return [
      el('section', { class: seen.models.length > 1 ? 'panel wide speed' : 'panel', 'aria-labelledby': 'speed' },
        el('h2', { id: 'speed' }, 'Speed'), this.speed(seen)),
      ...seen.models.map((m) => el('section', { class: 'panel', 'aria-label': m.name },
        el('h2', {}, m.name, m.state !== 'loaded' && el('span', { class: 'state' }, m.state)), ...this.model(m))),
      el('section', { class: 'panel wide', 'aria-labelledby': 'actors' }, el('h2', { id: 'actors' }, 'Actors'),
        seen.defects > 0 && el('p', { class: 'problem' }, `${seen.defects} messages were lost or not expected: a defect.`),
        actorTable(seen.actors)),
    ];
  }

  speed(seen) {
    const total = (name) => (look) => look.models.reduce((n, m) => n + m[name], 0);
    const tokens = total('rate');
    return el('div', {}, el('p', { class: 'figure' }, el('strong', {}, rate(tokens(seen))), ' tokens/s'),
      line(this.history.map(tokens), `Tokens per second in the last ${this.history.length} seconds`),
      facts([['prompts', rate(total('prompts')(seen)) + ' tokens/s'], ['steps', rate(total('steps')(seen)) + '/s'],
        ['running', total('running')(seen)], ['waiting', total('waiting')(seen)]]));
  }

  model(m) {
    if (m.state !== 'loaded') {
      const why = m.waitedFor ? `${m.waitedFor} requests wait for it.` : 'It is loaded when somebody asks for it.';
      return [el('p', { class: 'quiet' }, why)];
    }
    const failure = m.failure ? [el('p', { class: 'problem' }, 'It cannot go on: ' + m.failure)] : [];
    return [...failure, ...this.device(m), facts(modelFacts(m)), ...meters(m)];
  }

  // device is where its time went: computing, or waiting for what.
  device(m) {
    const past = this.history.map((look) => look.models.find((o) => o.name === m.name)?.device ?? {});
    const now = m.device ?? {};
    const legend = causes.filter(([name]) => now[name] >= 0.0005 || name === 'computing');
    return [stack(past, `What ${m.deviceId} did in each of the last seconds; the list below has the numbers of the last one`),
      el('ul', { class: 'legend' }, legend.map(([name, words]) => el('li', {}, draw('svg', { class: 'swatch', 'aria-hidden': 'true' },
        draw('rect', { class: 'cause-' + name, width: 11, height: 11 })),
      name === 'computing' || name === 'no_work' ? words : 'waits: ' + words, el('b', {}, percent(now[name] ?? 0)))))];
  }
}

function facts(list) {
  return el('dl', { class: 'facts' }, list.map(([name, value]) => el('div', {}, el('dt', {}, name), el('dd', {}, String(value)))));
}

function modelFacts(m) {
  const all = [['tokens/s', rate(m.rate)], ['prompt tokens/s', rate(m.prompts)], ['rows a step', m.rows.toFixed(1)],
    ['first token', duration(m.first)], ['between tokens', duration(m.gap)], ['running', m.running], ['waiting', m.waiting]];
  if (m.streams) all.push(['streamed', bytes(m.streamed) + '/s']);
  if (m.experts !== null) all.push(['experts found', percent(m.experts)]);
  if (m.failed) all.push(['steps failed', m.failed]);
  return all;
}

function meters(m) {
  const sum = (parts) => parts.reduce((n, [, size]) => n + size, 0) || 1;
  const blocks = ['used', 'cached', 'free'].map((name) => [name, m.blocks[name]]);
  const tiers = ['device', 'host', 'disk'].map((name) => [name, m.weights?.[name] ?? 0]);
  return [meter('KV blocks', blocks, sum(blocks), String), meter('Weights', tiers, sum(tiers), bytes)];
}

// meter is a bar of parts of a whole.
function meter(title, parts, total, words) {
  const text = parts.filter(([, n]) => n > 0).map(([name, n]) => `${words(n)} ${name}`).join(' · ') || 'none';
  return el('div', { class: 'meter' }, el('p', {}, title, el('span', { class: 'quiet' }, text)),
    draw('svg', { viewBox: '0 0 100 4', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, pieces(parts, total)));
}

function pieces(parts, total) {
  let at = 0;
  return parts.map(([name, n]) => {
    const width = (100 * n) / total;
    at += width;
    return draw('rect', { class: 'part-' + name, x: at - width, y: 0, width, height: 4 });
  });
}

// line is a chart of one value, the newest at the right.
function line(values, label) {
  const most = Math.max(1, ...values);
  const x = (i) => 100 - (100 * (values.length - 1 - i)) / (kept - 1);
  const points = values.map((v, i) => `${x(i).toFixed(2)},${(39 - (37 * v) / most).toFixed(2)}`);
  const chart = draw('svg', { class: 'chart', viewBox: '0 0 100 40', preserveAspectRatio: 'none', role: 'img', 'aria-label': label });
  if (points.length > 1) {
    chart.append(draw('path', { class: 'area', d: `M${x(0).toFixed(2)},40L${points.join('L')}L100,40Z` }),
      draw('path', { class: 'line', d: 'M' + points.join('L') }));
  }
  return chart;
}

// stack is a chart of shares of each second, the newest at the right.
function stack(looks, label) {
  const width = 100 / kept;
  const chart = draw('svg', { class: 'chart', viewBox: '0 0 100 40', preserveAspectRatio: 'none', role: 'img', 'aria-label': label });
  looks.forEach((shares, i) => {
    let y = 40;
    for (const [name] of causes) {
      const height = 40 * Math.min(1, shares[name] ?? 0);
      if (height < 0.05) continue;
      y -= height;
      chart.append(draw('rect', { class: 'cause-' + name, x: 100 - (looks.length - i) * width, y, width: width + 0.05, height }));
    }
  });
  return chart;
}

function actorTable(rows) {
  const head = ['Actor', 'Mailbox', 'Busy', 'Wait', 'Messages/s', 'Credits held', 'Restarts'];
  return el('div', { class: 'actors', tabindex: '0', role: 'group', 'aria-labelledby': 'actors' }, el('table', {},
    el('thead', {}, el('tr', {}, head.map((text, i) => el('th', { scope: 'col', class: i ? 'to-right' : '' }, text)))),
    el('tbody', {}, rows.map(actorRow))));
}

function actorRow(a) {
  const depth = a.id.split('/').length - 1;
  const name = depth === 0 ? a.id : a.id.slice(a.id.indexOf('/') + 1) + (a.id.endsWith('*') ? ` (${a.count})` : '');
  const bar = draw('svg', { class: 'bar', viewBox: '0 0 100 10', preserveAspectRatio: 'none', 'aria-hidden': 'true' },
    draw('rect', { class: 'rail', width: 100, height: 10 }),
    draw('rect', { class: 'level', width: 100 * Math.min(1, a.busy), height: 10 }));
  const cell = (...children) => el('td', { class: 'to-right' }, ...children);
  return el('tr', {}, el('th', { scope: 'row', title: a.id }, name),
    cell(String(a.mailbox), el('span', { class: 'quiet' }, ` of ${a.peak}`)),
    cell(bar, percent(a.busy)), cell(a.wait ? duration(a.wait) : '–'),
    cell(rate(a.rate)), cell(a.credits.map((c) => `${c.carries} ${c.held}/${c.limit}`).join(', ') || '–'),
    cell(a.restarts ? el('strong', { class: 'bad' }, String(a.restarts)) : '0'));
}
