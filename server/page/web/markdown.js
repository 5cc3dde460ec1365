// Markdown as elements. marked says what the text is made of; elements are made here, one kind after the other. HTML in
// the text is shown as the text that it is, but for what markup.js knows, and pictures are links: nothing that a model
// writes is fetched or run.

import { Lexer, lexer, use } from './vendor/marked/marked.esm.js';
import { codeBlock } from './code.js';
import { el } from './dom.js';
import { formula } from './math.js';
import { fold, foldedView, isCode, notes, pairs } from './markup.js';

// Math in TeX's signs is a text of its own: Markdown would take its backslashes and underscores for marks.
const math = /^(?:\\\([\s\S]+?\\\)|\\\[[\s\S]+?\\\]|\$\$[\s\S]+?\$\$)/;

use({
  gfm: true,
  breaks: false,
  extensions: [...notes, {
    name: 'math', level: 'inline',
    start: (text) => /\\[([]|\$\$/.exec(text)?.index,
    tokenizer(text) {
      const raw = math.exec(text)?.[0];
      return raw && { type: 'math', raw };
    },
  }],
});

// Bounds of what is laid out. Text beyond them is shown as it was written: its lexer takes time by the square of how
// deep lists nest, calls itself for each level of a quotation, and browsers lay out very deep elements in minutes.
const longest = 300_000; // characters
const deepestMark = 100; // column of a list's or a quotation's mark
const deepest = 60; // elements in one another
const deepestFold = 8; // details in one another: each is read once more for every one around it

// mark is the beginning of a line up to its last mark of a list or a quotation.
const mark = /^[ \t>]*(?:(?:>|[-*+](?=\s)|\d{1,9}[.)](?=\s))[ \t>]*)+/gm;

// tokensOf is what a text is made of; one that is out of bounds is made of itself.
function tokensOf(text) {
  try {
    if (text.length <= longest && !(text.match(mark) ?? []).some((m) => m.length > deepestMark)) {
      return fold(lexer(text)).filter((token) => token.type !== 'space' && token.type !== 'def');
    }
  } catch (e) {
    if (!(e instanceof RangeError)) throw e; // the stack is full
  }
  return [{ type: 'raw', raw: text }];
}

// Markdown is a text that grows. Blocks that did not change keep their elements, and with them what the reader selected.
export class Markdown {
  constructor(root) {
    this.root = root;
    this.blocks = []; // {key, node}
  }

  show(text) {
    const tokens = tokensOf(text);
    setLevels(tokens);
    const keys = tokens.map((token) => (token.level ?? '') + token.raw);
    let same = 0;
    while (same < tokens.length && same < this.blocks.length && this.blocks[same].key === keys[same]) same++;
    const gone = this.blocks.splice(same);
    for (const old of gone) old.node.remove();
    for (let i = same; i < tokens.length; i++) {
      const node = block(tokens[i]);
      if (gone[i - same]?.node.open) node.open = true; // details that grow stay open
      this.root.append(node);
      this.blocks.push({ key: keys[i], node });
    }
  }
}

// setLevels gives headings their place under the message's own, whatever the model began with, and none skips a level.
function setLevels(tokens) {
  const headings = tokens.filter((token) => token.type === 'heading');
  const least = headings.reduce((all, token) => Math.min(all, token.depth), 6);
  let before = 2;
  for (const token of headings) before = token.level = Math.min(before + 1, 3 + token.depth - least, 6);
}

function block(token, depth = 0) {
  if (depth > deepest) return el('span', {}, token.raw);
  const within = (t) => block(t, depth + 1);
  switch (token.type) {
    case 'heading': // within a list or a quotation it structures nothing
      return el(token.level ? 'h' + token.level : 'p', { class: 'heading' }, inline(token.tokens));
    case 'paragraph':
      return el('p', {}, inline(token.tokens));
    case 'text': // of a tight list
      return el('span', {}, token.tokens ? inline(token.tokens) : plain(token));
    case 'code':
      return codeBlock(token.text, (token.lang || '').trim().split(/\s+/)[0].toLowerCase());
    case 'blockquote':
      return el('blockquote', {}, token.tokens.filter((t) => t.type !== 'space').map(within));
    case 'list':
      return list(token, within);
    case 'table':
      return table(token);
    case 'hr':
      return el('hr');
    case 'html':
      if (!isCode(token.text)) return el('p', { class: 'lines' }, inline(Lexer.lexInline(token.text.trimEnd())));
      return el('pre', { class: 'markup', tabindex: '0' }, token.text);
    case 'raw':
      return el('pre', { class: 'markup', tabindex: '0' }, token.raw);
    case 'details':
      return foldedView(inline(Lexer.lexInline(token.title)), depth < deepestFold ? tokensOf(token.body).map(within) : [token.body]);
    case 'note':
      return el('p', { class: 'note-text' }, el('sup', {}, token.label), ' ', inline(token.tokens));
  }
  return el('p', {}, token.raw);
}

function list(token, within) {
  const items = token.items.map((item) => el('li', item.task ? { class: 'task' } : {},
    item.tokens.filter((t) => t.type !== 'space').map((t) => (t.type === 'checkbox' ? checkbox(t) : within(t)))));
  return token.ordered ? el('ol', token.start === 1 ? {} : { start: token.start }, items) : el('ul', {}, items);
}

function checkbox(token) {
  return el('span', { class: 'check', role: 'img', 'aria-label': token.checked ? 'done' : 'to do' }, token.checked ? '☑' : '☐');
}

function table(token) {
  const cell = (kind) => (c) => el(kind, c.align ? { class: 'to-' + c.align } : {}, inline(c.tokens));
  return el('div', { class: 'table', tabindex: '0', role: 'group', 'aria-label': 'Table' }, el('table', {},
    el('thead', {}, el('tr', {}, token.header.map(cell('th')))),
    el('tbody', {}, token.rows.map((row) => el('tr', {}, row.map(cell('td')))))));
}

function inline(tokens = [], depth = 0) {
  if (depth > deepest) return tokens.map((token) => token.raw ?? textOf(token));
  return pairs(tokens).map((token) => {
    switch (token.type) {
      case 'mark': return el(token.name, {}, inline(token.tokens, depth + 1));
      case 'noteMark': return el('sup', { class: 'note-mark' }, token.label);
      case 'strong': return el('strong', {}, inline(token.tokens, depth + 1));
      case 'em': return el('em', {}, inline(token.tokens, depth + 1));
      case 'del': return el('del', {}, inline(token.tokens, depth + 1));
      case 'codespan': return el('code', {}, token.text);
      case 'br': return el('br');
      case 'math': return formula(token.raw);
      case 'link': return link(token.href, inline(token.tokens, depth + 1));
      case 'image': return link(token.href, [token.text || 'picture']);
      case 'text': return token.tokens ? inline(token.tokens, depth + 1) : plain(token);
      case 'escape': return token.text;
      case 'html': return /^<br\s*\/?>$/i.test(token.text) ? el('br') : token.text;
    }
    return token.raw;
  }).flat();
}

// textOf is the text of a mark that lies too deep. It does not call itself.
function textOf(token) {
  const rest = [token];
  let text = '';
  while (rest.length) {
    const t = rest.pop();
    if (t.type === 'mark') rest.push(...t.tokens.toReversed());
    else text += t.raw;
  }
  return text;
}

// link leads out of the page, and only to addresses that a browser opens and does not run.
function link(href, children) {
  let url;
  try {
    url = new URL(href);
  } catch {
    return children; // relative: there is nothing here that it could mean
  }
  if (!['http:', 'https:', 'mailto:'].includes(url.protocol)) return children;
  return [el('a', { href: url.href, target: '_blank', rel: 'noopener noreferrer nofollow' }, ...children)];
}

const entities = {
  amp: '&', lt: '<', gt: '>', quot: '"', apos: "'", nbsp: '\u00a0', mdash: '—', ndash: '–', hellip: '…', bull: '•',
  middot: '·', laquo: '«', raquo: '»', lsquo: '‘', rsquo: '’', ldquo: '“', rdquo: '”', copy: '©', reg: '®', trade: '™',
  deg: '°', times: '×', divide: '÷', plusmn: '±', le: '≤', ge: '≥', ne: '≠', larr: '←', rarr: '→', euro: '€', sect: '§',
};

// plain is text with its character references resolved.
function plain(token) {
  return token.text.replace(/&(?:#(\d{1,7})|#x([\da-f]{1,6})|(\w+));/gi, (all, decimal, hex, name) => {
    if (name) return Object.hasOwn(entities, name) ? entities[name] : all;
    const code = decimal ? parseInt(decimal, 10) : parseInt(hex, 16);
    return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : all;
  });
}
