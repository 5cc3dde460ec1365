// Files that go with a message: chosen, dropped or pasted. Texts, and pictures for a model that sees.

import { byId, el, icon, iconButton, toast } from './dom.js';
import { DraftFiles } from './drafts.js';
import { bytes } from './figures.js';

const largest = 1 << 20; // bytes of a file
const most = 12; // files of a message
const largestPicture = 8 << 20; // bytes of a picture
const shown = 100_000; // characters of a file that are shown

// eyes says whether the chosen model takes pictures.
export const eyes = { open: () => false };

const isPicture = (type) => /^image\/(png|jpeg|webp|gif)$/.test(type);

// picture takes a picture as the data: URL that the API takes; it throws what to tell the user.
async function picture(file) {
  if (file.size > largestPicture) {
    throw new Error(`${file.name} has ${bytes(file.size)}: pictures may have ${bytes(largestPicture)}.`);
  }
  const reader = new FileReader();
  await new Promise((done, failed) => {
    reader.onload = done;
    reader.onerror = () => failed(new Error(`${file.name} cannot be read.`));
    reader.readAsDataURL(file);
  });
  return { name: file.name, text: '', picture: reader.result };
}

// read takes a file's text; it throws what to tell the user.
async function read(file) {
  if (isPicture(file.type) && eyes.open()) return picture(file);
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

const size = (f) => bytes(f.picture ? Math.floor((f.picture.length - f.picture.indexOf(',') - 1) * 3 / 4) : new Blob([f.text]).size);

// pictureView draws a picture of a message. The page's policy lets no data: URL be an image, so the bytes are drawn.
function pictureView(f) {
  const canvas = el('canvas', { class: 'picture', role: 'img', 'aria-label': f.name, width: 1, height: 1 });
  paint(canvas, f.picture).catch(() => canvas.replaceWith(el('p', { class: 'quiet' }, `${f.name} cannot be shown.`)));
  return canvas;
}

async function paint(canvas, url) {
  const [head, data] = url.split(',');
  const raw = Uint8Array.from(atob(data), (c) => c.charCodeAt(0));
  const image = await createImageBitmap(new Blob([raw], { type: head.slice(5).split(';')[0] }));
  const scale = Math.min(1, 480 / image.width, 360 / image.height);
  canvas.width = Math.max(1, image.width * scale);
  canvas.height = Math.max(1, image.height * scale);
  canvas.getContext('2d').drawImage(image, 0, 0, canvas.width, canvas.height);
  image.close();
}

// fileView is a file of a message, which unfolds.
export function fileView(f) {
  if (f.picture) return pictureView(f);
  const text = el('pre', { tabindex: '0' });
  return el('details', { class: 'call', toggle: () => {
    if (!text.textContent) text.textContent = f.text.length > shown ? f.text.slice(0, shown) + '…' : f.text;
  } }, el('summary', {}, icon('file'), el('span', {}, f.name + ' '), el('span', {}, size(f))), text);
}
