// The settings, in a drawer. A field that is left empty is not sent, and the model's own recommendation holds.

import { byId, el, iconButton } from './dom.js';
import { conversationFields } from './here.js';
import { saveSettings, unset } from './store.js';

const numbers = [
  ['temperature', 'Temperature', '0.8', { min: 0, max: 5, step: 0.05 }, 'Lower is steadier, 0 always takes the likeliest.'],
  ['top_p', 'Top-p', '0.95', { min: 0, max: 1, step: 0.01 }, 'Keeps the likeliest tokens up to this sum.'],
  ['top_k', 'Top-k', '40', { min: 0, step: 1 }, 'Keeps so many of the likeliest.'],
  ['min_p', 'Min-p', '0.05', { min: 0, max: 1, step: 0.01 }, 'Drops what is less likely than this share of the best.'],
  ['repeat_penalty', 'Repeat penalty', '1', { min: 0.5, max: 2, step: 0.01 }, ''],
  ['presence_penalty', 'Presence penalty', '0', { min: -2, max: 2, step: 0.1 }, ''],
  ['frequency_penalty', 'Frequency penalty', '0', { min: -2, max: 2, step: 0.1 }, ''],
  ['max_tokens', 'Most tokens', 'no limit', { min: 1, step: 1 }, 'Where an answer is cut.'],
  ['seed', 'Seed', 'random', { min: 0, step: 1 }, 'The same seed gives the same answer.'],
];

// settingsDrawer shows settings and changes them; changed is called after each change. here is the conversation on the
// screen: {conversation(), keep(), save()}.
// tools are those of servers.
export function settingsDrawer(settings, changed, here, tools) {
  const dialog = byId('settings');
  const set = (name, value) => {
    settings[name] = value;
    saveSettings(settings);
    changed(name);
  };
  const labelled = (name, label, input, note) => {
    const id = 'set-' + name;
    input.id = id;
    input.value = settings[name];
    input.addEventListener('change', () => { if (input.checkValidity()) set(name, input.value); else input.reportValidity(); });
    if (note) input.setAttribute('aria-describedby', id + '-note');
    return el('div', { class: 'field field-' + name }, el('label', { for: id }, label), input,
      note && el('p', { class: 'note', id: id + '-note' }, note));
  };
  const choice = (options) => el('select', {}, options.map(([value, text]) => el('option', { value }, text)));
  const fill = () => dialog.replaceChildren(
    el('header', {}, el('h2', { id: 'settings-title' }, 'Settings'), iconButton('close', 'Close the settings', () => dialog.close())),
    el('div', { class: 'drawer-body' },
      ...conversationFields(here.conversation(), settings, {
        keep: here.keep, save: here.save,
        keepPresets: (presets) => set('presets', presets),
      }),
      el('h3', {}, 'All conversations'),
      labelled('system', 'System prompt', el('textarea', { rows: '4', placeholder: 'You are a helpful assistant.' }),
        'Stands before every conversation that has none of its own.'),
      labelled('thinking', 'Thinking', choice([['', 'As the model likes'], ['on', 'On'], ['off', 'Off']]),
        'For models whose template asks.'),
      el('h3', {}, 'How tokens are chosen'),
      el('p', { class: 'note' }, 'What is empty, the model’s file decides.'),
      el('div', { class: 'fields' }, numbers.map(([name, label, placeholder, bounds, note]) => labelled(name, label,
        el('input', { type: 'number', inputmode: 'decimal', placeholder, ...bounds }), note))),
      labelled('stop', 'Stop texts', el('textarea', { rows: '2' }), 'One in each line: the answer ends before it.'),
      labelled('tools', 'Tools', el('textarea', { rows: '4', spellcheck: 'false', class: 'mono',
        placeholder: '[{"type": "function", "function": {"name": …}}]' }),
      'As OpenAI’s API has them. The page shows calls and takes their results from you.'),
      ...tools.fields(),
      el('h3', {}, 'This page'),
      labelled('theme', 'Colours', choice([['auto', 'As the system'], ['light', 'Light'], ['dark', 'Dark']])),
      el('button', { type: 'button', class: 'button', click: reset }, 'Set all back')));
  function reset() {
    Object.assign(settings, unset, { model: settings.model, presets: settings.presets, servers: settings.servers });
    saveSettings(settings);
    changed('theme');
    fill();
  }
  dialog.addEventListener('click', (e) => { if (e.target === dialog) dialog.close(); });
  return () => {
    fill();
    dialog.showModal();
  };
}

// askKey asks for the server's key; given is called with it and whether to remember it.
export function askKey(wrong, given) {
  const dialog = byId('key');
  const input = el('input', { type: 'password', id: 'key-value', autocomplete: 'current-password', required: true });
  const remember = el('input', { type: 'checkbox', id: 'key-remember' });
  dialog.replaceChildren(el('form', {
    submit: (e) => {
      e.preventDefault();
      dialog.close();
      given(input.value.trim(), remember.checked);
    },
  },
  el('h2', { id: 'key-title' }, 'This server wants a key'),
  el('p', { class: 'quiet' }, 'Whoever started sluice knows it. It stays in this browser and goes to this server alone.'),
  wrong && el('p', { class: 'problem', role: 'alert' }, 'That key is not one of the server’s.'),
  el('div', { class: 'field' }, el('label', { for: 'key-value' }, 'Key'), input),
  el('div', { class: 'tick' }, remember, el('label', { for: 'key-remember' }, 'Remember it on this device')),
  el('div', { class: 'row' }, el('button', { type: 'submit', class: 'button first' }, 'Continue'))));
  if (!dialog.open) dialog.showModal();
  input.focus();
}
