// Conversations as files: JSON that another browser takes in again.

import { el } from './dom.js';

const format = 'sluice-conversations';
const longest = 64 << 20; // bytes of a file that is read
const roles = ['user', 'assistant', 'tool'];

// save has the browser keep conversations as a file.
export function save(conversations, name) {
  const text = JSON.stringify({ format, version: 1, conversations }, null, 1);
  const url = URL.createObjectURL(new Blob([text], { type: 'application/json' }));
  el('a', { href: url, download: `${name.replace(/[^\p{L}\p{N} _-]+/gu, '').trim().slice(0, 60) || 'conversation'}.json` }).click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

// load reads the conversations of a file; it throws what to tell the user.
export async function load(file) {
  if (file.size > longest) throw new Error(`${file.name} is too large for conversations.`);
  let read;
  try {
    read = JSON.parse(await file.text());
  } catch {
    throw new Error(`${file.name} is no JSON.`);
  }
  if (read?.format !== format || !Array.isArray(read.conversations)) {
    throw new Error(`${file.name} has no conversations that this page wrote.`);
  }
  return read.conversations.map(conversation).filter(Boolean);
}

const isId = (id) => typeof id === 'string' && /^[0-9a-f]{8,64}$/.test(id);
const text = (s) => (typeof s === 'string' ? s : '');
const time = (n) => (Number.isFinite(n) ? n : Date.now());

// conversation takes over what a conversation may have, and no more: who wrote the file is not known.
function conversation(c) {
  if (!isId(c?.id) || typeof c.messages !== 'object') return null;
  const messages = {};
  for (const m of Object.values(c.messages ?? {})) {
    if (isId(m?.id) && roles.includes(m.role)) messages[m.id] = message(m);
  }
  for (const m of Object.values(messages)) if (!rooted(m, messages)) return null;
  const head = Object.hasOwn(messages, c.head) ? c.head : null;
  return head && { id: c.id, title: text(c.title) || 'Conversation', updated: time(c.updated), system: text(c.system), head, messages };
}

function message(m) {
  const out = { id: m.id, parent: isId(m.parent) ? m.parent : null, role: m.role, content: text(m.content), created: time(m.created) };
  for (const name of ['thought', 'callId', 'name', 'error', 'model', 'ended']) if (text(m[name])) out[name] = m[name];
  if (Number.isFinite(m.changed)) out.changed = m.changed;
  if (m.dropped) out.dropped = true;
  if (Array.isArray(m.calls)) {
    out.calls = m.calls.map((call) => ({ id: text(call?.id), name: text(call?.name), arguments: text(call?.arguments) }));
  }
  if (Array.isArray(m.files)) {
    out.files = m.files.map((f) => ({ name: text(f?.name), text: text(f?.text),
      ...(/^data:image\/(png|jpeg|webp|gif);base64,/.test(text(f?.picture)) && { picture: f.picture }) })).filter((f) => f.name);
  }
  if (m.stats) out.stats = Object.fromEntries(Object.entries(m.stats).filter(([, n]) => Number.isFinite(n)));
  return out;
}

// rooted says whether a message's parents lead to the root: they might go round.
function rooted(m, messages) {
  const seen = new Set();
  for (; m.parent !== null; m = messages[m.parent]) {
    if (seen.has(m.id) || !Object.hasOwn(messages, m.parent)) return false;
    seen.add(m.id);
  }
  return true;
}
