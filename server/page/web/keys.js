// The keys of the page, and the list of them.

import { byId, el, iconButton } from './dom.js';

const all = [
  [['Enter'], 'Send the message'],
  [['Shift', 'Enter'], 'Start a line in the message'],
  [['↑'], 'In an empty message: edit the last question'],
  [['Esc'], 'Stop the answer; close what is open'],
  [['/'], 'Go to the message'],
  [['Ctrl', 'K'], 'Search conversations'],
  [['Alt', 'N'], 'Begin a new conversation'],
  [['?'], 'Show this list'],
];

// showKeys opens the list.
export function showKeys() {
  const dialog = byId('keys');
  dialog.replaceChildren(el('div', { class: 'keys' },
    el('header', {}, el('h2', { id: 'keys-title' }, 'Keys'), iconButton('close', 'Close the list of keys', () => dialog.close())),
    el('dl', {}, all.map(([keys, what]) => el('div', {},
      el('dt', {}, keys.flatMap((key, i) => [i > 0 && ' + ', el('kbd', {}, key)])), el('dd', {}, what)))),
    el('p', { class: 'quiet' }, 'On a Mac, ⌘ is as good as Ctrl.')));
  if (!dialog.open) dialog.showModal();
}

// listenToKeys calls what keys are for. acts: escape(), search(), write() (false: it cannot), begin()
export function listenToKeys(acts) {
  byId('keys').addEventListener('click', (e) => { if (e.target === byId('keys')) byId('keys').close(); });
  byId('open-keys').addEventListener('click', showKeys);
  addEventListener('keydown', (e) => {
    if (document.querySelector('dialog[open]')) return;
    const writing = /^(INPUT|TEXTAREA|SELECT)$/.test(e.target.tagName);
    const bare = !e.ctrlKey && !e.metaKey && !e.altKey;
    let done = true;
    if (e.key === 'Escape') {
      acts.escape();
      return;
    }
    if (e.key === 'k' && (e.ctrlKey || e.metaKey)) acts.search();
    else if (e.code === 'KeyN' && e.altKey && !e.ctrlKey && !e.metaKey) acts.begin();
    else if (e.key === '?' && bare && !writing) showKeys();
    else if (e.key === '/' && bare && !writing) done = acts.write();
    else done = false;
    if (done) e.preventDefault();
  });
}
