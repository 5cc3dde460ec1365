// Elements without HTML: whatever is a string becomes text, never markup.

const svg = 'http://www.w3.org/2000/svg';

// el makes an element. Props that are functions listen ("click"), true and false set attributes without a value, class
// and the rest are attributes. Children are elements, texts, or nothing.
export function el(name, props = {}, ...children) {
  return fill(document.createElement(name), props, children);
}

// draw makes an element of a picture.
export function draw(name, props = {}, ...children) {
  return fill(document.createElementNS(svg, name), props, children);
}

function fill(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (typeof value === 'function') node.addEventListener(name, value);
    else if (value === true) node.setAttribute(name, '');
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((child) => child != null && child !== false));
  return node;
}

// icon is one of the symbols of index.html.
export function icon(name) {
  return draw('svg', { class: 'icon', 'aria-hidden': 'true' }, draw('use', { href: '#' + name }));
}

// iconButton is a button that shows an icon and says what it does.
export function iconButton(name, label, click, props = {}) {
  return el('button', { type: 'button', class: 'icon-button', 'aria-label': label, title: label, click, ...props }, icon(name));
}

export const byId = (id) => document.getElementById(id);

// announce tells those who do not see the screen.
export function announce(text) {
  byId('announce').textContent = text;
}

let toastTimer = 0;

// toast says something for a while, with a button if there is something to do about it.
export function toast(text, label, act) {
  const box = byId('toast');
  const hide = () => { box.hidden = true; };
  clearTimeout(toastTimer);
  box.replaceChildren(el('span', {}, text));
  if (label) box.append(el('button', { type: 'button', class: 'link', click: () => { hide(); act(); } }, label));
  box.hidden = false;
  toastTimer = setTimeout(hide, 8000);
}

// copy puts text on the clipboard. Pages that are not served securely have no clipboard of their own.
export async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = el('textarea', { class: 'unseen', 'aria-hidden': 'true' });
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand('copy');
  area.remove();
}

// copyButton copies what text() says, and says that it did.
export function copyButton(label, text, props = {}) {
  const button = iconButton('copy', label, async () => {
    try {
      await copy(text());
    } catch {
      toast('The browser does not let this page copy: select the text instead.');
      return;
    }
    button.replaceChildren(icon('done'));
    announce('Copied');
    setTimeout(() => button.replaceChildren(icon('copy')), 1600);
  }, props);
  return button;
}
