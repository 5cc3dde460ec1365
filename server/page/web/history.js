// The list of conversations beside the chat.

import { byId, el, iconButton } from './dom.js';

// showHistory lists conversations by when they were last used. acts: rename(conversation, title), remove(conversation).
// running says of an id whether an answer is written there.
export function showHistory(conversations, current, acts, running = () => false) {
  const rows = [];
  let group = '';
  for (const c of conversations) {
    if (when(c.updated) !== group) {
      group = when(c.updated);
      rows.push(el('li', { class: 'group' }, group));
    }
    rows.push(row(c, c.id === current, acts, running(c.id)));
  }
  if (!rows.length) rows.push(el('li', { class: 'none' }, 'Nothing yet.'));
  byId('history').replaceChildren(...rows);
}

function row(c, current, acts, running) {
  const link = el('a', { href: '#/c/' + c.id, 'aria-current': current && 'true', title: c.title },
    running && el('span', { class: 'pulse', role: 'img', 'aria-label': 'Being answered: ' }), c.title);
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
