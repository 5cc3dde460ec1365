// The conversation on the screen: asking, streaming, stopping, editing, and other versions.

import { body, Growing, reading } from './answer.js';
import { chat } from './api.js';
import { Composer } from './composer.js';
import { announce, byId, el, toast } from './dom.js';
import { MessageView } from './message.js';
import { add, begin, choose, drop, merge, siblings, way, wire } from './thread.js';

const saving = 1000; // milliseconds between what is kept of an answer that grows

export class Chat {
  // page: {settings, model(), context(), waiting(model), conversations, changed(conversation), refused(error),
  // tools}
  constructor(page) {
    this.page = page;
    this.conversation = begin();
    this.views = new Map();
    this.runs = new Map(); // by conversation's id: {abort, message, conversation}
    this.scroll = byId('scroll');
    this.list = byId('messages');
    this.prompt = byId('prompt');
    this.composer = new Composer({ send: () => this.send(), editLast: (e) => this.editLast(e), running: () => this.running });
    this.follows = true;
    this.listen();
    this.show();
  }

  listen() {
    byId('stop').addEventListener('click', () => this.stop());
    byId('to-end').addEventListener('click', () => this.toEnd(true));
    this.scroll.addEventListener('scroll', () => {
      const s = this.scroll;
      this.follows = s.scrollHeight - s.scrollTop - s.clientHeight < 60;
      byId('to-end').hidden = this.follows;
    }, { passive: true });
  }

  // running is the answer that is written for the conversation on the screen.
  get running() {
    return this.runs.get(this.conversation.id);
  }

  open(conversation) {
    if (this.conversation.id === conversation.id) return;
    this.conversation = this.runs.get(conversation.id)?.conversation ?? conversation;
    this.views.clear();
    this.list.replaceChildren();
    this.composer.open(this.conversation);
    this.show();
    this.toEnd(true);
  }

  // renew takes what another tab wrote: also while an answer comes here, which stays what is shown.
  renew(theirs) {
    const running = this.runs.get(theirs.id)?.conversation;
    const c = running ?? this.conversation;
    if (c.id !== theirs.id) return;
    merge(c, theirs);
    c.title = theirs.title;
    c.system = theirs.system;
    if (c !== running) {
      c.head = theirs.head;
      c.updated = theirs.updated;
    }
    if (c === this.conversation) this.show();
  }

  // forget stops what is written for a conversation that was deleted.
  forget(id) {
    this.runs.get(id)?.abort.abort();
  }

  send(text = this.prompt.value) {
    if (this.running || !text.trim() && !this.composer.attachments.files().length) return;
    const files = this.composer.sent(this.conversation);
    add(this.conversation, this.conversation.head, { role: 'user', content: text, ...(files.length && { files }) });
    this.answer(this.conversation.head);
  }

  // answer asks for one to what leads to a message.
  answer(parent) {
    if (this.running) return;
    const c = this.conversation;
    const question = wire(way({ ...c, head: parent }), this.system());
    const message = add(c, parent, { role: 'assistant', content: '', model: this.page.model() });
    this.write(message, question);
  }

  // more asks for what follows an answer that was cut or stopped.
  more(message) {
    if (this.running) return;
    delete message.ended;
    delete message.error;
    message.changed = Date.now();
    this.prompt.focus();
    const said = wire(way({ ...this.conversation, head: message.id }), this.system());
    this.write(message, said, { continue_final_message: true });
  }

  // system is the system prompt: the conversation's own, or that for all.
  system() {
    return this.conversation.system || this.page.settings.system;
  }

  // write has an answer grow by what the model says to messages.
  async write(message, messages, also = {}) {
    const c = this.conversation;
    const { settings } = this.page;
    const model = this.page.model();
    const run = { abort: new AbortController(), message, conversation: c };
    this.runs.set(c.id, run);
    this.follows = true;
    this.show();
    this.toEnd(true);
    this.keep(c).then(() => this.page.changed(c)); // it is in the list from now on
    announce('The answer is being written');
    const growing = new Growing(message);
    const patience = setInterval(async () => {
      if (growing.firstAt) return;
      run.waits = await this.page.waiting(model);
      if (!growing.firstAt) this.grown(run);
    }, 1000);
    try {
      for await (const event of chat({ ...body(settings, model, messages, this.page.tools.offers()), ...also }, run.abort.signal)) {
        growing.take(event);
        run.reads = reading(event) ?? run.reads;
        this.grown(run);
      }
      announce('Answer: ' + (message.content || 'none').slice(0, 4000));
    } catch (e) {
      this.broke(run, e);
    }
    clearInterval(patience);
    this.runs.delete(c.id);
    c.updated = Date.now();
    await this.keep(c);
    this.page.changed(c);
    if (this.conversation !== c) return;
    this.show();
    if (this.follows) this.toEnd(false);
  }

  broke(run, e) {
    run.message.changed = Date.now();
    if (e.name === 'AbortError') {
      run.message.ended = 'stopped';
      announce('Stopped');
      return;
    }
    run.message.error = e instanceof SyntaxError ? 'The tools in the settings are no JSON: ' + e.message : e.message;
    this.page.refused(e, () => this.again(run.message));
  }

  // grown shows what came, once for each frame of the screen, and keeps it now and then.
  grown(run) {
    if (!run.frame) {
      run.frame = requestAnimationFrame(() => {
        run.frame = 0;
        if (this.running !== run) return;
        this.views.get(run.message.id)?.show({ versions: [run.message], busy: true, last: true, waits: run.waits || run.reads });
        this.composer.fill(run.message.stats, this.page.context());
        if (this.follows) this.toEnd(false);
      });
    }
    if (!(performance.now() - run.kept < saving)) {
      run.kept = performance.now();
      this.keep(run.conversation);
    }
  }

  async keep(c) {
    try {
      await this.page.conversations.put(c);
    } catch {
      toast('This browser has no room for the conversation: delete an old one.');
    }
  }

  stop() {
    this.running?.abort.abort();
    this.prompt.focus();
  }

  again(message) {
    if (this.running) return;
    if (message.error && !message.content) drop(message);
    this.conversation.head = message.parent;
    this.prompt.focus();
    this.answer(message.parent);
  }

  // edit asks a question in other words; false: not while an answer comes.
  edit(message, text) {
    if (this.running) return false;
    add(this.conversation, message.parent, { role: 'user', content: text, ...(message.files && { files: message.files }) });
    this.prompt.focus();
    this.answer(this.conversation.head);
    return true;
  }

  // rewrite makes another version of an answer, by hand.
  rewrite(message, content) {
    if (this.running) return false;
    add(this.conversation, message.parent, { role: 'assistant', content, model: message.model, ended: 'edited' });
    this.keep(this.conversation).then(() => this.page.changed(this.conversation));
    this.show();
    return true;
  }

  choose(message, label) {
    if (this.running) return;
    choose(this.conversation, message);
    this.keep(this.conversation);
    this.show();
    this.views.get(message.id).focus(label);
  }

  results(message, texts) {
    message.calls.forEach((call, i) => add(this.conversation, this.conversation.head,
      { role: 'tool', content: texts[i], callId: call.id, name: call.name }));
    this.answer(this.conversation.head);
  }

  editLast(e) {
    const mine = this.list.querySelectorAll('.from-user [data-act=edit]');
    if (!mine.length) return;
    e.preventDefault();
    mine[mine.length - 1].click();
  }

  // show brings the screen up to date with the way to the head.
  show() {
    const c = this.conversation;
    const shown = way(c);
    const acts = {
      again: (m) => this.again(m), more: (m) => this.more(m), edit: (m, text) => this.edit(m, text),
      rewrite: (m, text) => this.rewrite(m, text),
      choose: (m, label) => this.choose(m, label),
      results: (m, texts) => this.results(m, texts), refresh: () => this.show(), tools: this.page.tools,
    };
    const nodes = shown.map((m, i) => {
      let view = this.views.get(m.id);
      if (!view || view.message !== m) this.views.set(m.id, view = new MessageView(m, acts));
      view.show({ versions: siblings(c, m), busy: this.running?.message === m, last: i === shown.length - 1 });
      return view.root;
    });
    const same = nodes.length === this.list.children.length && nodes.every((n, i) => this.list.children[i] === n);
    if (!same) this.list.replaceChildren(...nodes);
    this.composer.fill(shown.findLast((m) => m.stats?.prompt)?.stats, this.page.context());
    byId('title').textContent = c.title || 'New conversation';
    byId('empty').hidden = shown.length > 0;
    const here = Boolean(this.running);
    byId('stop').hidden = !here;
    byId('send').hidden = here;
  }

  toEnd(now) {
    if (now) this.follows = true;
    this.scroll.scrollTop = this.scroll.scrollHeight;
    byId('to-end').hidden = this.follows; // what fits does not scroll, and so says nothing
  }

  // starters are questions for who does not know what to ask.
  starters(texts) {
    byId('starters').replaceChildren(...texts.map((text) => el('li', {},
      el('button', { type: 'button', class: 'starter', click: () => this.send(text) }, text))));
  }
}
