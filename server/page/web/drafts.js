// What was typed and not sent, for each conversation, over reloads. All conversations that have no message yet share one.

import { opened } from './store.js';

const name = 'sluice-drafts';
const most = 40; // drafts that are kept, the newest
const longest = 200_000; // characters of one that is kept
const pause = 300; // milliseconds without typing, after which a draft is written

export class Drafts {
  constructor() {
    this.late = null; // {id, text} that is not written yet
    this.timer = 0;
    addEventListener('pagehide', () => this.write());
  }

  get(id) {
    this.write();
    return Object.fromEntries(read())[id] ?? '';
  }

  // set keeps a text, or forgets it where it is empty.
  set(id, text) {
    if (this.late && this.late.id !== id) this.write();
    this.late = { id, text };
    clearTimeout(this.timer);
    if (text) this.timer = setTimeout(() => this.write(), pause);
    else this.write();
  }

  write() {
    if (!this.late) return;
    const { id, text } = this.late;
    this.late = null;
    const rest = read().filter(([other]) => other !== id);
    if (text && text.length <= longest) rest.push([id, text]);
    try {
      localStorage.setItem(name, JSON.stringify(rest.slice(-most)));
    } catch { /* there is no room: the text is still in the field */ }
  }
}

// DraftFiles are the files of messages that are not sent, over reloads, each with its draft's id.
export class DraftFiles {
  constructor() {
    this.db = opened(name, 'files').catch(() => null); // where the browser keeps nothing, they last as long as the page
  }

  // put keeps the files of a draft, or forgets it where there are none. The oldest drafts make room.
  async put(id, files) {
    const s = await this.store('readwrite');
    if (!s) return;
    if (!files.length) {
      s.delete(id);
      return;
    }
    s.put({ id, files, at: Date.now() });
    const request = s.getAll();
    request.onsuccess = () => {
      for (const old of request.result.sort((a, b) => b.at - a.at).slice(most)) s.delete(old.id);
    };
  }

  // all are the drafts that have files: [{id, files}].
  async all() {
    const s = await this.store('readonly');
    if (!s) return [];
    return new Promise((resolve) => {
      const request = s.getAll();
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => resolve([]);
    });
  }

  async store(mode) {
    return (await this.db)?.transaction('files', mode).objectStore('files');
  }
}

function read() {
  try {
    const list = JSON.parse(localStorage.getItem(name));
    return Array.isArray(list) ? list : [];
  } catch {
    return [];
  }
}
