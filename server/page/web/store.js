// What the browser keeps: conversations in IndexedDB, settings in localStorage. Nothing leaves it.

import { merge } from './thread.js';

const settingsName = 'sluice-settings';

// opened is a database of one store, whose objects have an id.
export function opened(name, store) {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open(name, 1);
    request.onupgradeneeded = () => request.result.createObjectStore(store, { keyPath: 'id' });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

// Conversations are those of this browser. Where it keeps nothing (a private window), they last as long as the page.
export class Conversations {
  constructor() {
    this.memory = new Map();
    this.removed = new Set(); // ids
    this.db = opened('sluice', 'conversations').catch(() => null);
    this.channel = new BroadcastChannel('sluice');
  }

  // changed calls back when another tab wrote.
  changed(call) {
    this.channel.onmessage = call;
  }

  async kept() {
    return await this.db !== null;
  }

  async all() {
    const list = await this.run('readonly', (s) => s.getAll()) ?? [...this.memory.values()];
    return list.sort((a, b) => b.updated - a.updated);
  }

  async get(id) {
    return await this.run('readonly', (s) => s.get(id)) ?? this.memory.get(id);
  }

  // put keeps a conversation, and what other tabs have added to it.
  async put(c) {
    if (this.removed.has(c.id)) return; // while an answer to it was written
    const copy = structuredClone(c);
    const kept = await this.run('readwrite', (s) => s.get(c.id),
      (s, theirs) => s.put(theirs ? merge(copy, theirs) : copy));
    if (kept === undefined) this.memory.set(copy.id, copy);
    this.channel.postMessage(c.id);
  }

  async remove(id) {
    this.removed.add(id);
    this.memory.delete(id);
    await this.run('readwrite', (s) => s.delete(id));
    this.channel.postMessage(id);
  }

  // restore takes a removal back.
  async restore(c) {
    this.removed.delete(c.id);
    await this.put(c);
  }

  // run does something, and then perhaps something with what came of it, in one transaction.
  async run(mode, act, then) {
    const db = await this.db;
    if (!db) return undefined;
    return new Promise((resolve, reject) => {
      const store = db.transaction('conversations', mode).objectStore('conversations');
      const request = act(store);
      request.onerror = () => reject(request.error);
      request.onsuccess = () => {
        if (!then) return resolve(request.result);
        const next = then(store, request.result);
        next.onerror = () => reject(next.error);
        next.onsuccess = () => resolve(next.result);
      };
    });
  }
}

// Settings that were not set are empty: the server's own hold then.
export const unset = {
  theme: 'auto', model: '', system: '', thinking: '', tools: '', temperature: '', top_p: '', top_k: '', min_p: '',
  repeat_penalty: '', presence_penalty: '', frequency_penalty: '', max_tokens: '', seed: '', stop: '', presets: [], servers: [],
};

export function loadSettings() {
  try {
    return { ...unset, ...JSON.parse(localStorage.getItem(settingsName)) };
  } catch {
    return { ...unset };
  }
}

export function saveSettings(settings) {
  localStorage.setItem(settingsName, JSON.stringify(settings));
}
