// Where messages are written: the field, its draft, files that go with it, and how full the context is.

import { byId, draw } from './dom.js';
import { Drafts } from './drafts.js';
import { Attachments } from './files.js';

export class Composer {
  // acts: send(), editLast(event), running()
  constructor(acts) {
    this.field = byId('prompt');
    this.drafts = new Drafts();
    this.attachments = new Attachments();
    this.draft = 'new'; // whose text is in the field
    byId('composer').addEventListener('submit', (e) => { e.preventDefault(); acts.send(); });
    this.field.addEventListener('input', () => {
      this.fit();
      this.drafts.set(this.draft, this.field.value);
    });
    this.field.addEventListener('keydown', (e) => {
      if (e.key === 'Enter' && !e.shiftKey && !e.isComposing) { e.preventDefault(); acts.send(); }
      if (e.key === 'ArrowUp' && !this.field.value && !acts.running()) acts.editLast(e);
    });
  }

  // fit makes the field as high as its text, up to a bound that the style sets.
  fit() {
    this.field.style.height = 'auto';
    this.field.style.height = this.field.scrollHeight + 'px';
  }

  // open shows what was typed for a conversation. All that have no message yet share one draft.
  open(c) {
    this.draft = c.head ? c.id : 'new';
    this.field.value = this.drafts.get(this.draft);
    this.attachments.open(this.draft);
    this.fit();
  }

  // sent empties the field, whose text is a message of a conversation now, and returns the files of that message.
  sent(c) {
    const files = this.attachments.take();
    this.field.value = '';
    this.fit();
    this.drafts.set(this.draft, '');
    this.draft = c.id;
    this.attachments.open(c.id);
    return files;
  }

  // fill shows how many tokens of a context an answer and what is before it take.
  fill(stats, context) {
    const box = byId('fill');
    const used = stats?.prompt ? stats.prompt + Math.max(0, (stats.tokens ?? 0) - (stats.had ?? 0)) : 0;
    box.hidden = !used || !context;
    if (box.hidden) return;
    const share = Math.min(1, used / context);
    box.classList.toggle('bad', share > 0.85);
    box.replaceChildren(
      draw('svg', { viewBox: '0 0 40 6', 'aria-hidden': 'true' }, draw('rect', { class: 'rail', width: 40, height: 6, rx: 3 }),
        draw('rect', { class: 'level', width: Math.max(2, 40 * share), height: 6, rx: 3 })),
      `Context: ${used.toLocaleString('en')} of ${context.toLocaleString('en')} tokens (${share < 0.01 ? '< 1' : Math.round(100 * share)} %)`);
  }
}
