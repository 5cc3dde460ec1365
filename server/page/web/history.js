// The list of conversations beside the chat.

import { byId, el, iconButton } from './dom.js';

// find lists the conversations in which all words of a text occur, each as {conversation, excerpt}.
export function find(conversations, text) {
  const words = fold(text).split(/\s+/).filter(Boolean);
  const found = [];
  for (const c of conversations) {
    const texts = [c.title, ...Object.values(c.messages).filter((m) => !m.dropped).map((m) => m.content)];
    const folded = texts.map(fold);
    if (!words.every((word) => folded.some((t) => t.includes(word)))) continue;
    found.push({ conversation: c, excerpt: words.length ? excerpt(texts, folded, words[0]) : '' });
  }
  return found;
}

const fold = (text) => text.toLowerCase();

// excerpt is what stands around a word in the first message that has it.
function excerpt(texts, folded, word) {
  const i = folded.findIndex((t, n) => n > 0 && t.includes(word));
  if (i < 0) return '';
  const at = folded[i].indexOf(word);
  const from = Math.max(0, at - 24);
  return (from ? '…' : '') + texts[i].slice(from, at + 60).replace(/\s+/g, ' ');
}

// showHistory lists conversations by when they were last used. acts: rename(conversation, title), remove(conversation).
// running says of an id whether an answer is written there; sought is what is searched for.
export function showHistory(conversations, current, acts, running = () => false, sought = '') {
  const rows = [];
  let group = '';
  for (const { conversation: c, excerpt: part } of find(conversations, sought)) {
    if (when(c.updated) !== group) {
      group = when(c.updated);
      rows.push(el('li', { class: 'group' }, group));
    }
    rows.push(row(c, c.id === current, acts, running(c.id), part));
  }
  if (!rows.length) rows.push(el('li', { class: 'none' }, sought.trim() ? 'Nothing is found.' : 'Nothing yet.'));
  byId('history').replaceChildren(...rows);
}

function row(c, current, acts, running, part) {
  const link = el('a', { href: '#/c/' + c.id, 'aria-current': current && 'true', title: c.title },
    running && el('span', { class: 'pulse', role: 'img', 'aria-label': 'Being answered: ' }), c.title,
    part && el('span', { class: 'excerpt' }, part));
  const item = el('li', { class: 'entry' }, link,
    iconButton('pencil', `Rename “${c.title}”`, () => rename(item, c, acts)),
    iconButton('bin', `Delete “${c.title}”`, () => acts.remove(c)));
  return item;
}

function rename(item, c, acts) {
  const input = el('input', { 'aria-label': 'Name of the conversation', value: c.title });
  let done = false;
  const end = (title) => {
    if (done) return;
    done = true;
    acts.rename(c, title.trim() || c.title);
  };
  input.addEventListener('blur', () => end(input.value));
  input.addEventListener('keydown', (e) => {
    if (e.key === 'Enter') end(input.value);
    if (e.key === 'Escape') { e.stopPropagation(); end(c.title); }
  });
  item.replaceChildren(input);
  input.focus();
  input.select();
}

function when(time) {
  const midnight = new Date().setHours(0, 0, 0, 0);
  if (time >= midnight) return 'Today';
  if (time >= midnight - 86_400_000) return 'Yesterday';
  if (time >= midnight - 7 * 86_400_000) return 'Last seven days';
  return 'Earlier';
}
