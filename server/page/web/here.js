// The part of the settings that belongs to the conversation on the screen: its system prompt, with presets, and its file.

import { el, toast } from './dom.js';
import { titleOf } from './thread.js';

// conversationFields are fields for a conversation. acts: keep(), keepPresets(presets), save().
export function conversationFields(c, settings, acts) {
  const area = el('textarea', { id: 'set-own-system', rows: '4', 'aria-describedby': 'own-system-note',
    placeholder: settings.system || 'As for all conversations.' });
  area.value = c.system ?? '';
  const take = () => {
    if ((c.system ?? '') === area.value) return;
    c.system = area.value;
    acts.keep();
  };
  area.addEventListener('change', take);
  const select = el('select', { id: 'preset' });
  const remove = el('button', { type: 'button', class: 'button', click: () => {
    change(settings.presets.filter((p) => p.name !== select.value));
  } }, 'Remove preset');
  const fill = (chosen) => {
    select.replaceChildren(el('option', { value: '' }, settings.presets.length ? 'Choose…' : 'None is kept yet'),
      ...settings.presets.map((p) => el('option', { value: p.name }, p.name)));
    select.value = chosen;
    select.disabled = !settings.presets.length;
    remove.hidden = !chosen;
  };
  const change = (presets, chosen = '') => {
    acts.keepPresets(presets);
    fill(chosen);
  };
  select.addEventListener('change', () => {
    const preset = settings.presets.find((p) => p.name === select.value);
    remove.hidden = !preset;
    if (!preset) return;
    area.value = preset.text;
    take();
  });
  const keep = () => {
    const text = area.value.trim();
    if (!text) {
      toast('Write a system prompt first: a preset is one that is kept.');
      return;
    }
    const name = titleOf(text);
    change([...settings.presets.filter((p) => p.name !== name), { name, text }], name);
  };
  fill(settings.presets.find((p) => p.text === area.value)?.name ?? '');
  return [
    el('h3', {}, 'This conversation'),
    el('div', { class: 'field' }, el('label', { for: 'set-own-system' }, 'Its system prompt'), area,
      el('p', { class: 'note', id: 'own-system-note' }, 'Instead of the one for all.')),
    el('div', { class: 'field' }, el('label', { for: 'preset' }, 'Presets'), select),
    el('div', { class: 'buttons' },
      el('button', { type: 'button', class: 'button', id: 'keep-preset', click: keep }, 'Keep as preset'), remove,
      c.head && el('button', { type: 'button', class: 'button', id: 'save-one', click: acts.save }, 'Export as JSON')),
  ];
}
