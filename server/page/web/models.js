// The server's models, in a drawer: which are there and loaded, and to load, unload, pull and delete them. What the server
// does not allow it says itself.

import { models, pull, tell } from './api.js';
import { announce, byId, el, iconButton } from './dom.js';
import { bytes } from './figures.js';

const every = 1000; // milliseconds between looks, while the drawer is open

// modelsDrawer returns what opens the drawer. acts: changed(), refused(error, again).
export function modelsDrawer(acts) {
  const dialog = byId('models');
  const list = el('ul', { class: 'stock' });
  const problem = el('p', { class: 'problem', role: 'alert', hidden: true });
  const puller = new Puller({ failed, done: look, asked: () => { problem.hidden = true; } });
  const rows = new Map(); // by name
  let timer = 0;

  function failed(e) {
    problem.textContent = e.message;
    problem.hidden = false;
    acts.refused(e, look);
  }

  // does asks the server for something about a model, and looks what came of it.
  async function does(name, path, method, row) {
    problem.hidden = true;
    row.waits = true;
    row.show();
    try {
      await tell(path, { model: name }, method);
      announce(`${name}: done`);
    } catch (e) {
      failed(e);
    }
    row.waits = false;
    await look();
    acts.changed();
  }

  async function look() {
    clearTimeout(timer);
    try {
      const all = await models();
      for (const name of rows.keys()) if (!all.some((m) => m.id === name)) rows.delete(name);
      for (const m of all) {
        if (!rows.has(m.id)) rows.set(m.id, new Row(does));
        rows.get(m.id).show(m);
      }
      const nodes = all.map((m) => rows.get(m.id).root);
      if (nodes.length !== list.children.length || nodes.some((n, i) => list.children[i] !== n)) list.replaceChildren(...nodes);
    } catch (e) {
      failed(e);
    }
    clearTimeout(timer);
    if (dialog.open) timer = setTimeout(look, every);
  }

  dialog.replaceChildren(
    el('header', {}, el('h2', { id: 'models-title' }, 'Models'), iconButton('close', 'Close the models', () => dialog.close())),
    el('div', { class: 'drawer-body' }, problem, list, puller.root));
  dialog.addEventListener('click', (e) => { if (e.target === dialog) dialog.close(); });
  dialog.addEventListener('close', () => acts.changed());
  return () => {
    problem.hidden = true;
    dialog.showModal();
    look();
  };
}

// Row is a model of the list.
class Row {
  constructor(does) {
    this.does = does;
    this.name = el('strong', {});
    this.about = el('span', { class: 'quiet' });
    this.turn = el('button', { type: 'button', class: 'button', click: () => {
      does(this.model.id, this.isLoaded() ? 'models/unload' : 'models/load', 'POST', this);
    } });
    this.bin = el('button', { type: 'button', class: 'button', click: () => this.remove(), blur: () => { this.sure = false; this.show(); } });
    this.root = el('li', {}, el('div', {}, this.name, this.about), el('div', { class: 'buttons' }, this.turn, this.bin));
  }

  isLoaded() {
    return (this.model.status?.value ?? 'loaded') === 'loaded';
  }

  // remove asks once more first: a file of gigabytes is gone.
  remove() {
    if (this.sure) this.does(this.model.id, 'api/delete', 'DELETE', this);
    this.sure = !this.sure;
    this.show();
  }

  show(m = this.model) {
    this.model = m;
    const phase = m.status?.value ?? 'loaded';
    const share = m.status?.progress;
    const texts = [phase + (share ? ` ${Math.round(100 * share)} %` : '')];
    if (m.meta?.size) texts.push(bytes(m.meta.size));
    if (m.capabilities?.includes('embedding')) texts.push('vectors of texts');
    this.name.textContent = m.id;
    this.about.textContent = texts.join(' · ');
    this.turn.textContent = this.isLoaded() ? 'Unload' : 'Load';
    this.turn.setAttribute('aria-label', `${this.turn.textContent} ${m.id}`);
    this.turn.disabled = Boolean(this.waits) || !['loaded', 'unloaded'].includes(phase);
    this.bin.textContent = this.sure ? 'Delete its file?' : 'Delete';
    this.bin.setAttribute('aria-label', this.sure ? `Delete its file? ${m.id}` : `Delete ${m.id}`);
    this.bin.classList.toggle('bad', Boolean(this.sure));
    this.bin.disabled = Boolean(this.waits);
  }
}

// Puller has the server download a model, and shows how far it is. acts: failed(error), done(), asked().
class Puller {
  constructor(acts) {
    this.acts = acts;
    this.input = el('input', { id: 'pull-name', placeholder: 'hf.co/OWNER/NAME-GGUF or llama3.2:1b', spellcheck: 'false', autocomplete: 'off',
      required: true });
    this.button = el('button', { type: 'submit', class: 'button first' }, 'Pull');
    this.stop = el('button', { type: 'button', class: 'button', hidden: true, click: () => this.abort.abort() }, 'Stop');
    this.bar = el('progress', { max: '1', value: '0', 'aria-label': 'How much has come', hidden: true });
    this.text = el('p', { class: 'note', role: 'status' });
    this.root = el('form', { class: 'field', submit: (e) => { e.preventDefault(); this.pull(); } },
      el('label', { for: 'pull-name' }, 'Download a model'), this.input, this.bar, this.text,
      el('div', { class: 'buttons' }, this.button, this.stop));
  }

  async pull() {
    const name = this.input.value.trim();
    if (!name || this.abort) return;
    this.abort = new AbortController();
    this.acts.asked();
    this.working(true);
    try {
      for await (const p of pull(name, this.abort.signal)) this.show(p);
      this.text.textContent = `${name} is here.`;
      this.input.value = '';
    } catch (e) {
      this.text.textContent = e.name === 'AbortError' ? 'Stopped: what has come is kept.' : '';
      if (e.name !== 'AbortError') this.acts.failed(e);
    }
    this.abort = null;
    this.working(false);
    this.acts.done();
  }

  working(on) {
    this.button.disabled = on;
    this.input.disabled = on;
    this.stop.hidden = !on;
    this.bar.hidden = !on;
    if (on) this.bar.removeAttribute('value'); // how much it is is not known yet
  }

  show(p) {
    const part = p.total ? `: ${bytes(p.completed ?? 0)} of ${bytes(p.total)}` : '';
    this.text.textContent = p.status + part;
    if (p.total) this.bar.value = (p.completed ?? 0) / p.total;
  }
}
