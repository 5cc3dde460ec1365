// The page: what is open, which model answers, and what to do when the server refuses.

import { health, key, models } from './api.js';
import { Chat } from './chat.js';
import { byId, el, toast } from './dom.js';
import { Engine } from './engine.js';
import { bytes, count } from './figures.js';
import { eyes } from './files.js';
import { showHistory } from './history.js';
import { listenToKeys } from './keys.js';
import { modelsDrawer } from './models.js';
import { Pictures } from './pictures.js';
import { askKey, settingsDrawer } from './settings.js';
import { Conversations, loadSettings, saveSettings } from './store.js';
import { begin } from './thread.js';
import { Tools } from './tools.js';
import { load, save } from './transfer.js';

const starters = ['What is the capital of France?', 'Write a Go function that reverses a string.', 'Tell me a short story about a fox.'];

let known = []; // models
let placed = ''; // id of the conversation that the address named last
const settings = loadSettings();
const conversations = new Conversations();
const tools = new Tools(settings.servers, {
  keep: (servers) => { settings.servers = servers; saveSettings(settings); },
  changed: () => chat.show(),
});
const page = {
  settings, conversations, refused, tools,
  model: () => byId('model').value,
  waiting,
  context: () => known.find((m) => m.id === byId('model').value)?.meta?.n_ctx,
  changed: async (c) => {
    await listConversations();
    if (known.some((m) => !loaded(m))) loadModels();
    // A new conversation gets its address, once: an address that changed since is where somebody goes.
    if (chat.conversation !== c || !c.head || placed === c.id || !['', '#/'].includes(location.hash)) return;
    placed = c.id;
    history.replaceState(null, '', '#/c/' + c.id);
  },
};
const chat = new Chat(page);
const engine = new Engine(refused);
const pictures = new Pictures(refused);
const openSettings = settingsDrawer(settings, (name) => { if (name === 'theme') paint(); }, {
  conversation: () => chat.conversation,
  keep: () => { if (chat.conversation.head) chat.keep(chat.conversation); },
  save: () => save([chat.conversation], chat.conversation.title),
}, tools);

// paint sets the colours that were asked for.
function paint() {
  if (settings.theme === 'auto') delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = settings.theme;
}

// refused asks for a key where that was the reason; again repeats what was refused.
function refused(e, again) {
  if (e.status !== 401) return;
  askKey(key.get() !== '', (value, remember) => {
    key.set(value, remember);
    loadModels();
    again();
  });
}

function banner(text) {
  byId('banner').hidden = !text;
  if (text && byId('banner').textContent !== text) byId('banner').textContent = text;
}

// loadModels fills the list of models; while the server is loading or away, it tries again.
async function loadModels() {
  const ill = await health();
  if (ill?.code === 'loading' || ill?.status === 0) {
    banner(ill.status === 0 ? 'The server does not answer. Trying again…' : `The model is ${ill.message}.`);
    setTimeout(loadModels, 1000);
    return;
  }
  banner(ill && ill.status !== 401 ? ill.message : '');
  try {
    const all = await models();
    known = all.filter(talks);
    pictures.models(all.filter((m) => m.capabilities?.includes('image')));
  } catch (e) {
    refused(e, () => {});
    if (e.status !== 401) banner(e.message);
    return;
  }
  const select = byId('model');
  select.replaceChildren(...known.map((m) => el('option', { value: m.id }, m.id + note(m))));
  if (!known.length) select.append(el('option', { value: '' }, 'No model that answers'));
  select.disabled = known.length === 0;
  select.value = known.some((m) => m.id === settings.model) ? settings.model : known[0]?.id ?? '';
  describe();
  chat.show();
}

eyes.open = () => known.some((m) => m.id === byId('model').value && m.capabilities?.includes('vision'));

const loaded = (m) => (m?.status?.value ?? 'loaded') === 'loaded';
const note = (m) => (loaded(m) || m.status.value === 'unloaded' ? '' : ` (${m.status.value})`);

// talks says whether a model writes text: others turn texts into vectors.
const talks = (m) => !m.capabilities || m.capabilities.includes('completion');

// waiting says why an answer does not begin yet, where that is known: its model is not loaded.
async function waiting(name) {
  try {
    known = (await models()).filter(talks);
  } catch {
    return '';
  }
  const m = known.find((o) => o.id === name);
  if (!m || loaded(m)) return '';
  const share = m.status.progress;
  return `${m.id} is ${m.status.value}` + (share ? `: ${Math.round(100 * share)} %` : '…');
}

// describe says what the chosen model is.
function describe() {
  const m = known.find((o) => o.id === byId('model').value);
  const meta = m?.meta;
  const parts = [];
  if (meta?.n_params) parts.push(count(meta.n_params) + ' parameters');
  if (meta?.n_ctx) parts.push(`a context of ${meta.n_ctx.toLocaleString('en')} tokens`);
  if (meta?.size) parts.push(bytes(meta.size));
  byId('about-model').textContent = m ? `${m.id} answers from this machine` + (parts.length ? ': ' + parts.join(', ') + '.' : '.') : '';
}

async function listConversations() {
  showHistory(await conversations.all(), chat.conversation.id, {
    rename: async (c, title) => {
      const c2 = chat.conversation.id === c.id ? chat.conversation : c;
      c2.title = title;
      await conversations.put(c2);
      listConversations();
    },
    remove: async (c) => {
      await conversations.remove(c.id);
      chat.forget(c.id);
      if (chat.conversation.id === c.id) location.hash = '#/';
      listConversations();
      toast(`“${c.title}” is deleted.`, 'Undo', async () => { await conversations.restore(c); listConversations(); });
    },
  }, (id) => chat.runs.has(id), byId('search').value);
}

// take brings the conversations of a file in, beside those that are here.
async function take(file) {
  try {
    const all = await load(file);
    for (const c of all) await conversations.restore(c);
    toast(all.length === 1 ? '“' + all[0].title + '” is here now.' : `${all.length} conversations are here now.`);
    await listConversations();
    const open = all.find((c) => c.id === chat.conversation.id);
    if (open) chat.renew(await conversations.get(open.id));
  } catch (e) {
    toast(e.message);
  }
}

// route opens what the address names.
async function route() {
  const at = location.hash;
  const view = { '#/engine': 'engine', '#/pictures': 'pictures' }[at] ?? 'chat';
  byId('chat').hidden = view !== 'chat';
  engine.open(view === 'engine');
  pictures.open(view === 'pictures');
  for (const link of document.querySelectorAll('.views a')) link.removeAttribute('aria-current');
  byId('to-' + view).setAttribute('aria-current', 'page');
  byId('model').closest('.model-picker').classList.toggle('blank', view === 'pictures');
  document.title = { engine: 'Engine · sluice', pictures: 'Pictures · sluice' }[view] ?? 'sluice';
  showSidebar(false);
  if (view !== 'chat') {
    await listConversations();
    return;
  }
  const id = at.startsWith('#/c/') ? at.slice(4) : '';
  placed = id;
  if (id !== chat.conversation.id || !chat.conversation.head) {
    const c = id && await conversations.get(id);
    if (c || !id) chat.open(c || begin());
    else location.hash = '#/';
  }
  byId('to-chat').href = chat.conversation.head ? '#/c/' + chat.conversation.id : '#/';
  if (chat.conversation.title) document.title = chat.conversation.title + ' · sluice';
  await listConversations();
  if (!matchMedia('(pointer: coarse)').matches) byId('prompt').focus();
}

function showSidebar(open) {
  const was = document.body.classList.toggle('sidebar-open', open);
  byId('scrim').hidden = !was;
  byId('stage').inert = was;
  byId('open-sidebar').setAttribute('aria-expanded', String(was));
  if (open) byId('close-sidebar').focus();
}

// startOver opens a conversation without messages: at once, not by the event of a changed address, since what is typed
// next belongs to it.
function startOver() {
  if (location.hash && location.hash !== '#/') history.pushState(null, '', '#/');
  route();
}

function listen() {
  addEventListener('hashchange', route);
  byId('new-chat').addEventListener('click', startOver);
  byId('to-chat').addEventListener('click', (e) => {
    e.preventDefault();
    location.hash = chat.conversation.head ? '#/c/' + chat.conversation.id : '#/';
  });
  byId('open-sidebar').addEventListener('click', () => showSidebar(true));
  byId('close-sidebar').addEventListener('click', () => { showSidebar(false); byId('open-sidebar').focus(); });
  byId('scrim').addEventListener('click', () => showSidebar(false));
  byId('open-settings').addEventListener('click', openSettings);
  byId('open-models').addEventListener('click', modelsDrawer({ changed: loadModels, refused }));
  byId('search').addEventListener('input', listConversations);
  byId('export').addEventListener('click', async () => save(await conversations.all(), 'sluice conversations'));
  byId('import').addEventListener('click', () => byId('import-file').click());
  byId('import-file').addEventListener('change', async (e) => {
    for (const file of e.target.files) await take(file);
    e.target.value = '';
  });
  byId('model').addEventListener('change', () => {
    settings.model = byId('model').value;
    saveSettings(settings);
    describe();
  });
  listenToKeys({ escape, search, write, begin: startOver });
  conversations.changed(async (e) => {
    await listConversations();
    const c = await conversations.get(e.data);
    if (c) {
      conversations.removed.delete(c.id); // its removal was taken back
      chat.renew(c);
      return;
    }
    conversations.removed.add(e.data);
    chat.forget(e.data);
    if (chat.conversation.id === e.data) location.hash = '#/';
  });
}

// escape closes the list of conversations where it lies over the rest, else it stops the answer.
function escape() {
  if (document.body.classList.contains('sidebar-open')) {
    showSidebar(false);
    byId('open-sidebar').focus();
  } else if (!pictures.root.hidden) pictures.running?.abort();
  else if (chat.running) chat.stop();
}

function search() {
  if (byId('open-sidebar').checkVisibility()) showSidebar(true);
  byId('search').focus();
}

function write() {
  if (byId('chat').hidden) return false;
  byId('prompt').focus();
  return true;
}

paint();
listen();
chat.starters(starters);
route();
loadModels();
tools.connect();
if (!await conversations.kept()) toast('This browser keeps nothing for this page: conversations last until it is closed.');
