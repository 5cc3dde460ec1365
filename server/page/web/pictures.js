// Pictures of texts: what is asked for, what comes of it while it is made, and those that were made, in this browser.

import { paint, painted } from './api.js';
import { announce, byId, el, icon, iconButton, toast } from './dom.js';
import { opened } from './store.js';

const sizes = ['512x512', '768x768', '1024x1024', '1024x768', '768x1024', '1344x768', '768x1344'];
const every = 1000; // milliseconds between two looks at how far a picture is
const shown = 24; // of the pictures that were made, unless more are asked for

// Made are the pictures of this browser. Where it keeps nothing, they last as long as the page.
class Made {
  constructor() {
    this.memory = new Map();
    this.db = opened('sluice-pictures', 'pictures').catch(() => null);
  }

  async all() {
    const list = await this.run('readonly', (s) => s.getAll()) ?? [...this.memory.values()];
    return list.sort((a, b) => b.made - a.made);
  }

  async put(p) {
    if (await this.run('readwrite', (s) => s.put(p)) === undefined) this.memory.set(p.id, p);
  }

  async remove(id) {
    this.memory.delete(id);
    await this.run('readwrite', (s) => s.delete(id));
  }

  async run(mode, act) {
    const db = await this.db;
    if (!db) return undefined;
    return new Promise((resolve, reject) => {
      const request = act(db.transaction('pictures', mode).objectStore('pictures'));
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  }
}

// Pictures is the view. refused is told of a refusal, and how to ask again.
export class Pictures {
  constructor(refused) {
    this.refused = refused;
    this.root = byId('pictures');
    this.made = new Made();
    this.most = shown;
    this.running = null; // what ends the picture that is made
    this.build();
  }

  // models are those that make pictures; without any there is no view.
  models(list) {
    byId('to-pictures').hidden = !list.length;
    const was = this.model.value;
    this.model.replaceChildren(...list.map((m) => el('option', { value: m.id }, m.id)));
    if (list.some((m) => m.id === was)) this.model.value = was;
    this.model.closest('.field').hidden = list.length < 2;
  }

  open(visible) {
    this.root.hidden = !visible;
    if (visible && !this.listed) this.list();
  }

  build() {
    const field = (label, input, note) => {
      input.id = 'picture-' + label.toLowerCase().replace(/ .*/, '');
      if (note) input.setAttribute('aria-describedby', input.id + '-note');
      return el('div', { class: 'field' }, el('label', { for: input.id }, label), input,
        note && el('p', { class: 'note', id: input.id + '-note' }, note));
    };
    const number = (least, most, placeholder) => el('input', { type: 'number', min: least, max: most, step: 1, placeholder });
    this.model = el('select', {});
    this.prompt = el('textarea', { rows: '4', required: true, placeholder: 'A lighthouse at dusk, oil on canvas' });
    this.size = el('select', {}, sizes.map((s) => el('option', { value: s }, s.replace('x', ' × '))));
    this.steps = number(1, 100, 'auto');
    this.seed = number(0, Number.MAX_SAFE_INTEGER, 'random');
    this.make = el('button', { class: 'button first', type: 'submit' }, 'Make a picture');
    const end = () => this.running?.abort();
    this.stop = el('button', { class: 'button', type: 'button', hidden: true, click: end }, icon('square'), 'Stop');
    this.form = el('form', { class: 'panel asked', submit: (e) => { e.preventDefault(); this.start(this.wanted()); } },
      el('h1', {}, 'Pictures'), field('Model', this.model), field('Prompt', this.prompt), field('Size', this.size),
      el('div', { class: 'fields' }, field('Steps', this.steps), field('Seed', this.seed)),
      el('div', { class: 'buttons' }, this.make, this.stop));
    this.prompt.addEventListener('keydown', (e) => {
      if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) this.form.requestSubmit();
    });
    this.now = el('section', { class: 'now', 'aria-label': 'The picture that is made', hidden: true });
    this.shelf = el('ul', { class: 'shelf', 'aria-label': 'Pictures that were made' });
    const more = () => { this.most += shown; this.list(); };
    this.older = el('button', { class: 'button', type: 'button', hidden: true, click: more }, 'Show older ones');
    this.root.replaceChildren(this.form, el('div', { class: 'gallery' }, this.now, this.shelf, this.older));
  }

  // wanted is what the form asks for.
  wanted() {
    const p = { model: this.model.value, prompt: this.prompt.value.trim(), size: this.size.value };
    if (this.steps.value) p.steps = Number(this.steps.value);
    p.seed = this.seed.value === '' ? anySeed() : Number(this.seed.value);
    return p;
  }

  // start has a picture made, and shows how it comes.
  async start(asked) {
    if (this.running || !asked.prompt) return;
    const control = this.running = new AbortController();
    const bar = el('progress', { max: 1, 'aria-label': 'How far the picture is' });
    const said = el('p', { class: 'quiet', role: 'status' }, 'Waiting…');
    const canvas = drawn('Preview of: ' + asked.prompt, { hidden: true });
    this.now.replaceChildren(canvas, bar, said);
    this.busy(true);
    const look = setInterval(() => this.look(bar, said), every);
    try {
      for await (const event of paint(asked, control.signal)) {
        const blob = blobOf(event.b64_json);
        canvas.hidden = false;
        await show(canvas, blob);
        if (event.type.endsWith('.completed')) await this.keep({ ...asked, blob });
      }
      this.busy(false);
    } catch (e) {
      this.failed(e, asked);
    } finally {
      clearInterval(look);
    }
  }

  busy(is) {
    if (!is) this.running = null;
    this.now.hidden = !is;
    this.make.hidden = is;
    this.stop.hidden = !is;
    (is ? this.stop : this.make).focus({ preventScroll: true });
  }

  failed(e, asked) {
    this.busy(false);
    if (e.name === 'AbortError') return announce('Stopped');
    if (e.status === 401) this.refused(e, () => this.start(asked));
    this.now.hidden = false;
    this.now.replaceChildren(el('p', { class: 'problem', role: 'alert' }, e.message));
    return undefined;
  }

  // look asks how far the picture is.
  async look(bar, said) {
    try {
      const at = await painted();
      const { sampling_step: step, sampling_steps: steps } = at.state;
      if (!(steps > 0) || !this.running) return;
      bar.value = at.progress;
      said.textContent = step < steps ? `Step ${step + 1} of ${steps}` : 'Making pixels of it…';
    } catch { /* the picture itself says what is wrong */ }
  }

  async keep(p) {
    await this.made.put({ ...p, id: crypto.getRandomValues(new Uint32Array(4)).join('-'), made: Date.now() });
    announce('The picture is done');
    await this.list();
  }

  // list shows the pictures that were made.
  async list() {
    this.listed = true;
    const all = await this.made.all();
    this.shelf.replaceChildren(...all.slice(0, this.most).map((p) => this.entry(p)));
    this.older.hidden = all.length <= this.most;
    if (!all.length) this.shelf.replaceChildren(el('li', { class: 'quiet none' }, 'Nothing yet. Pictures stay in this browser.'));
  }

  entry(p) {
    const canvas = drawn(p.prompt);
    show(canvas, p.blob).catch(() => canvas.replaceWith(el('p', { class: 'quiet' }, 'This picture cannot be shown.')));
    const facts = [p.size.replace('x', ' × '), p.steps && `${p.steps} steps`, `seed ${p.seed}`, p.model].filter(Boolean).join(' · ');
    return el('li', { class: 'made' }, canvas,
      el('p', { class: 'said' }, p.prompt), el('p', { class: 'quiet facts' }, facts),
      el('div', { class: 'buttons' },
        iconButton('again', 'Again, with another seed', () => { this.fill(p); this.seed.value = ''; this.start(this.wanted()); }),
        iconButton('pencil', 'Take over what was asked, and the seed', () => { this.fill(p); this.prompt.focus(); }),
        iconButton('down', 'Save the picture', () => download(p)),
        iconButton('bin', 'Delete the picture', () => this.remove(p))));
  }

  // fill has the form ask for what a picture was made of.
  fill(p) {
    if ([...this.model.options].some((o) => o.value === p.model)) this.model.value = p.model;
    const has = [...this.size.options].some((o) => o.value === p.size);
    if (!has) this.size.append(el('option', { value: p.size }, p.size.replace('x', ' × ')));
    this.prompt.value = p.prompt;
    this.size.value = p.size;
    this.steps.value = p.steps ?? '';
    this.seed.value = p.seed;
  }

  async remove(p) {
    await this.made.remove(p.id);
    await this.list();
    this.prompt.focus();
    toast('The picture is deleted.', 'Undo', async () => { await this.made.put(p); this.list(); });
  }
}

const drawn = (label, more = {}) => el('canvas', { class: 'picture', role: 'img', 'aria-label': label, width: 1, height: 1, ...more });
const anySeed = () => crypto.getRandomValues(new Uint32Array(1))[0];

function blobOf(text) {
  return new Blob([Uint8Array.from(atob(text), (c) => c.charCodeAt(0))], { type: 'image/png' });
}

// show draws a picture: the page's policy lets no address of one be shown.
async function show(canvas, blob) {
  const image = await createImageBitmap(blob);
  canvas.width = image.width;
  canvas.height = image.height;
  canvas.getContext('2d').drawImage(image, 0, 0);
  image.close();
}

function download(p) {
  const url = URL.createObjectURL(p.blob);
  const name = p.prompt.replace(/[^\p{L}\p{N} _-]+/gu, '').trim().slice(0, 60) || 'picture';
  el('a', { href: url, download: `${name} ${p.seed}.png` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
