// What the browser keeps: conversations in IndexedDB, settings in localStorage. Nothing leaves it.

const settingsName = 'sluice-settings';

function opened() {
  return new Promise((resolve, reject) => {
    const request = indexedDB.open('sluice', 1);
    request.onupgradeneeded = () => request.result.createObjectStore('conversations', { keyPath: 'id' });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
}

// Conversations are those of this browser. Where it keeps nothing (a private window), they last as long as the page.
export class Conversations {
  constructor() {
    this.memory = new Map();
    this.db = opened().catch(() => null);
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

  async put(c) {
    const copy = structuredClone(c);
    if (await this.run('readwrite', (s) => s.put(copy)) === undefined) this.memory.set(copy.id, copy);
    this.channel.postMessage(c.id);
  }

  async remove(id) {
    this.memory.delete(id);
    await this.run('readwrite', (s) => s.delete(id));
    this.channel.postMessage(id);
  }

  async run(mode, act) {
    const db = await this.db;
    if (!db) return undefined;
    return new Promise((resolve, reject) => {
      const request = act(db.transaction('conversations', mode).objectStore('conversations'));
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  }
}

// Settings that were not set are empty: the server's own hold then.
export const unset = {
  theme: 'auto', model: '', system: '', thinking: '', tools: '', temperature: '', top_p: '', top_k: '', min_p: '',
  repeat_penalty: '', presence_penalty: '', frequency_penalty: '', max_tokens: '', seed: '', stop: '',
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
