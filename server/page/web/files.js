// Text files that go with a message: chosen, dropped or pasted.

import { byId, el, icon, iconButton, toast } from './dom.js';
import { DraftFiles } from './drafts.js';
import { bytes } from './figures.js';

const largest = 1 << 20; // bytes of a file
const most = 12; // files of a message
const shown = 100_000; // characters of a file that are shown

// read takes a file's text; it throws what to tell the user.
async function read(file) {
  if (/\.pdf$/i.test(file.name) || file.type === 'application/pdf') {
    throw new Error(`${file.name} is a PDF, and PDFs are not read here: make a text of it first (pdftotext -layout).`);
  }
  if (file.size > largest) throw new Error(`${file.name} has ${bytes(file.size)}: files may have ${bytes(largest)}.`);
  let text;
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(await file.arrayBuffer());
  } catch {
    throw new Error(`${file.name} is no text: models here read text only.`);
  }
  if (text.includes('\0')) throw new Error(`${file.name} is no text: models here read text only.`);
  return { name: file.name, text };
}

// Attachments are the files that go with the next message of a conversation.
export class Attachments {
  constructor() {
    this.all = new Map(); // by draft: files
    this.draft = 'new';
    this.kept = new DraftFiles();
    this.recall();
    const choose = byId('attach-file');
    byId('attach').addEventListener('click', () => choose.click());
    choose.addEventListener('change', async () => {
      await this.add([...choose.files]);
      choose.value = '';
    });
    byId('prompt').addEventListener('paste', (e) => {
      if (!e.clipboardData.files.length) return;
      e.preventDefault();
      this.add([...e.clipboardData.files]);
    });
    this.listen(byId('chat'));
  }

  // listen takes files that are dropped somewhere.
  listen(box) {
    const isFiles = (e) => e.dataTransfer?.types.includes('Files');
    box.addEventListener('dragover', (e) => {
      if (!isFiles(e)) return;
      e.preventDefault();
      box.classList.add('dropping');
    });
    box.addEventListener('dragleave', (e) => { if (!box.contains(e.relatedTarget)) box.classList.remove('dropping'); });
    box.addEventListener('drop', (e) => {
      if (!isFiles(e)) return;
      e.preventDefault();
      box.classList.remove('dropping');
      this.add([...e.dataTransfer.files]);
    });
  }

  open(draft) {
    this.draft = draft;
    this.show();
  }

  // recall brings back what was there before the page was loaded anew.
  async recall() {
    for (const { id, files } of await this.kept.all()) if (!this.all.has(id)) this.all.set(id, files);
    this.show();
  }

  // set changes the files of a draft.
  set(draft, files) {
    this.all.set(draft, files);
    this.kept.put(draft, files);
  }

  // take gives the files to a message.
  take() {
    const files = this.files();
    this.set(this.draft, []);
    this.show();
    return files;
  }

  files() {
    return this.all.get(this.draft) ?? [];
  }

  async add(chosen) {
    const { draft } = this;
    for (const file of chosen) {
      try {
        const got = await read(file);
        const files = (this.all.get(draft) ?? []).filter((f) => f.name !== got.name);
        if (files.length === most) throw new Error(`A message takes ${most} files at most.`);
        this.set(draft, [...files, got]);
      } catch (e) {
        toast(e.message);
      }
    }
    this.show();
    byId('prompt').focus();
  }

  show() {
    const list = byId('attached');
    const files = this.files();
    list.hidden = !files.length;
    list.replaceChildren(...files.map((f) => el('li', {}, icon('file'), el('span', {}, f.name), el('span', { class: 'quiet' }, size(f)),
      iconButton('close', `Leave out ${f.name}`, () => {
        this.set(this.draft, files.filter((o) => o !== f));
        this.show();
        byId('prompt').focus();
      }))));
  }
}

const size = (f) => bytes(new Blob([f.text]).size);

// fileView is a file of a message, which unfolds.
export function fileView(f) {
  const text = el('pre', { tabindex: '0' });
  return el('details', { class: 'call', toggle: () => {
    if (!text.textContent) text.textContent = f.text.length > shown ? f.text.slice(0, shown) + '…' : f.text;
  } }, el('summary', {}, icon('file'), el('span', {}, f.name + ' '), el('span', {}, size(f))), text);
}
