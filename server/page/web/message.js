// One message on the screen: what was said, thought and called, what it cost, and what can be done with it.

import { callView, folded, resultForm } from './calls.js';
import { copyButton, el, icon, iconButton } from './dom.js';
import { fileView } from './files.js';
import { Markdown } from './markdown.js';

// Questions longer than this are folded.
const longest = { lines: 16, characters: 1800 };

// MessageView shows a message, and again when it has grown. acts: edit, rewrite, again, more (go on with an answer),
// choose(sibling, label of the button), results(texts), refresh; and tools, those of servers.
export class MessageView {
  constructor(message, acts) {
    this.message = message;
    this.acts = acts;
    this.body = el('div', { class: 'body' });
    this.foot = el('div', { class: 'foot' });
    const who = { user: 'You said', assistant: 'The model said', tool: 'A tool gave' }[message.role];
    this.root = el('article', { class: 'message from-' + message.role, 'data-id': message.id },
      el('h2', { class: 'unseen' }, who), this.body, this.foot);
    if (message.role === 'assistant') this.prepareAnswer();
  }

  prepareAnswer() {
    this.summary = el('span', {}, 'Thinking…');
    this.thoughtText = el('div', { class: 'prose' });
    this.thought = el('details', { class: 'thought', hidden: true }, el('summary', {}, this.summary), this.thoughtText);
    this.thoughtMarkdown = new Markdown(this.thoughtText);
    this.text = el('div', { class: 'prose' });
    this.markdown = new Markdown(this.text);
    this.calls = el('div', { class: 'calls' });
    this.notice = el('div');
    this.body.append(this.thought, this.text, this.calls, this.notice);
    this.thought.addEventListener('toggle', () => this.showThought());
  }

  // show brings the screen up to date. versions are the siblings, itself among them; busy: the answer still grows;
  // waits says what it waits for.
  show({ versions, busy, last, waits }) {
    if (this.editing) return; // what is typed there is not shown by anything else
    const m = this.message;
    this.root.classList.toggle('busy', busy);
    this.root.setAttribute('aria-busy', String(busy));
    if (m.role === 'assistant') this.showAnswer(busy, last, waits);
    else if (m.role === 'tool') this.body.replaceChildren(folded(`Result of ${m.name || 'the tool'}`, m.content));
    else this.showQuestion();
    const focused = this.foot.contains(document.activeElement) && document.activeElement.getAttribute('aria-label');
    this.foot.replaceChildren(...(busy ? [this.cost()] : this.buttons(versions)));
    if (focused) this.focus(focused);
  }

  // showQuestion shows the beginning of a long one until it is unfolded.
  showQuestion() {
    const text = this.message.content;
    if (this.body.hasChildNodes() && this.bubble.shown === text) return;
    const lines = text.split('\n');
    const start = lines.slice(0, longest.lines).join('\n').slice(0, longest.characters);
    this.bubble = el('div', { class: 'bubble' }, text);
    this.bubble.shown = text;
    if (start.length + 200 < text.length) {
      const part = el('div', {}, start + '…');
      const [n, what] = lines.length > longest.lines ? [lines.length, 'lines'] : [text.length, 'characters'];
      const size = `${n.toLocaleString('en')} ${what}`;
      const button = el('button', { type: 'button', class: 'link', 'aria-expanded': 'false', click: () => {
        const open = button.getAttribute('aria-expanded') !== 'true';
        button.setAttribute('aria-expanded', String(open));
        part.textContent = open ? text : start + '…';
        button.textContent = open ? 'Show less' : `Show all ${size}`;
      } }, `Show all ${size}`);
      this.bubble.replaceChildren(part, button);
    }
    this.body.replaceChildren(...(this.message.files ?? []).map(fileView), ...(text.trim() ? [this.bubble] : []));
  }

  showAnswer(busy, last, waits) {
    const m = this.message;
    this.thought.hidden = !m.thought;
    const seconds = m.stats?.thought >= 0.05 ? ` for ${m.stats.thought.toFixed(1)} s` : '';
    this.summary.textContent = busy && !m.content ? 'Thinking…' : 'Thought' + seconds;
    this.showThought();
    this.markdown.show(m.content);
    this.showCalls(last && !busy);
    this.showNotice(busy, last, waits);
  }

  // showCalls makes them anew only where they changed: a result may be half written.
  showCalls(open) {
    const { calls } = this.message;
    const { tools } = this.acts;
    const now = JSON.stringify([calls, open, open && calls?.map((c) => tools.find(c.name)?.server.address)]);
    if (now === this.shownCalls || !calls?.length) return;
    this.shownCalls = now;
    this.calls.replaceChildren(...calls.map(callView));
    if (open) this.calls.append(resultForm(calls, tools, (texts) => this.acts.results(this.message, texts)));
  }

  showThought() {
    if (this.thought.open && this.message.thought) this.thoughtMarkdown.show(this.message.thought);
  }

  showNotice(busy, last, waits) {
    const m = this.message;
    let notice = [];
    if (busy && !m.content && !m.thought && !m.calls?.length) {
      notice = [el('span', { class: 'pulse', role: 'img', 'aria-label': 'Waiting for the first word' }),
        waits && el('span', { class: 'quiet' }, ' ' + waits)];
    }
    else if (m.error) {
      notice = [el('div', { class: 'problem', role: 'alert' }, el('strong', {}, 'The answer failed'), el('p', {}, m.error),
        el('button', { type: 'button', class: 'button', click: () => this.acts.again(m) }, icon('again'), 'Try again'))];
    } else if (!busy) notice = this.ending(last);
    this.notice.replaceChildren(...notice.filter(Boolean));
  }

  // ending says how an answer ended, where it did not end well, and lets the last one go on.
  ending(last) {
    const m = this.message;
    const bare = !m.content && !m.calls?.length;
    let text = '';
    if (m.ended === 'stop') text = bare && (m.thought ? 'The answer is empty: the model only thought.' : 'The answer is empty.');
    else if (m.ended === 'length') text = 'The answer was cut: it reached the most tokens it may have.';
    else if (m.ended === 'stopped') text = 'Stopped.';
    else if (m.ended === 'edited') text = 'Edited by you.';
    else if (!m.ended) text = 'Not finished: another tab is writing it, or was closed while it did.';
    const goes = last && m.content && !m.calls?.length && ['length', 'stopped', 'edited', undefined].includes(m.ended);
    return text ? [el('p', { class: 'quiet ending' }, text, goes && el('button', { type: 'button', class: 'button', 'data-act': 'more',
      click: () => this.acts.more(m) }, 'Continue'))] : [];
  }

  // focus is for who uses the keyboard: a button that was replaced gives it to its successor.
  focus(label) {
    const buttons = [...this.foot.querySelectorAll('button:not(:disabled)')];
    (buttons.find((b) => b.getAttribute('aria-label') === label) ?? buttons[0])?.focus();
  }

  buttons(versions) {
    const m = this.message;
    const at = versions.indexOf(m);
    const all = [];
    if (versions.length > 1) {
      all.push(el('span', { class: 'versions' },
        iconButton('left', 'Earlier version', () => this.acts.choose(versions[at - 1], 'Earlier version'), { disabled: at === 0 }),
        el('span', {}, `${at + 1} of ${versions.length}`),
        iconButton('right', 'Later version', () => this.acts.choose(versions[at + 1], 'Later version'),
          { disabled: at === versions.length - 1 })));
    }
    if (m.content) all.push(copyButton('Copy the message', () => m.content, { 'data-act': 'copy' }));
    if (m.role === 'user' && m.content.trim()) all.push(iconButton('pencil', 'Edit the message', () => this.edit(), { 'data-act': 'edit' }));
    if (m.role === 'assistant') {
      if (m.content && !m.calls?.length) all.push(iconButton('pencil', 'Edit the answer', () => this.edit(), { 'data-act': 'edit' }));
      all.push(iconButton('again', 'Another answer', () => this.acts.again(m), { 'data-act': 'again' }), this.cost());
    }
    return all;
  }

  // cost is what the answer took.
  cost() {
    const s = this.message.stats;
    if (!s) return el('span', { class: 'cost' });
    const texts = [];
    if (s.tokens) texts.push(s.tokens === 1 ? '1 token' : `${s.tokens} tokens`);
    if (s.rate) texts.push(`${s.rate < 10 ? s.rate.toFixed(1) : Math.round(s.rate)} tokens/s`);
    if (s.first) texts.push(`first after ${s.first.toFixed(2)} s`);
    if (s.prompt) texts.push(`prompt ${s.prompt}` + (s.cached ? `, ${s.cached} cached` : ''));
    if (this.message.model) texts.push(this.message.model);
    return el('span', { class: 'cost' }, texts.join(' · '));
  }

  // edit lets the question be asked in other words, or an answer be another one.
  edit() {
    const answer = this.message.role === 'assistant';
    const done = (text) => (answer ? this.acts.rewrite(this.message, text) : this.acts.edit(this.message, text));
    const rows = Math.min(12, this.message.content.split('\n').length + 1);
    const area = el('textarea', { 'aria-label': 'Edited message', rows });
    area.value = this.message.content;
    const close = () => {
      this.stopEditing();
      this.acts.refresh();
      this.root.querySelector('[data-act=edit]')?.focus();
    };
    const form = el('form', {
      class: 'editor',
      submit: (e) => {
        e.preventDefault();
        if (!area.value.trim() || !done(area.value)) return;
        this.stopEditing();
        if (answer) this.acts.refresh();
      },
      keydown: (e) => {
        if (e.key === 'Escape') { e.stopPropagation(); close(); }
        if (e.key === 'Enter' && (answer ? e.ctrlKey : !e.shiftKey) && !e.isComposing) { e.preventDefault(); form.requestSubmit(); }
      },
    }, area, el('div', { class: 'row' }, el('button', { type: 'button', class: 'button', click: close }, 'Cancel'),
      el('button', { type: 'submit', class: 'button first' }, answer ? 'Keep' : 'Ask again')));
    this.editing = true;
    this.parts = [...this.body.childNodes];
    this.body.replaceChildren(form);
    this.foot.replaceChildren();
    area.focus();
    area.setSelectionRange(area.value.length, area.value.length);
  }

  // stopEditing puts back what the form stood for.
  stopEditing() {
    this.editing = false;
    this.body.replaceChildren(...this.parts);
  }
}
