// Formulas in TeX as MathML, which browsers lay out themselves: no fonts and no styles come with it. KaTeX is loaded with
// the first formula. What it cannot read, or what is too large, stays as it was written.

import { el } from './dom.js';

const longest = 4000; // characters of a formula that is set
const deepest = 48; // elements in one another: browsers take long for more
const kept = 400; // formulas that are not made anew while the text around them grows

const made = new Map(); // by what was written: an element, or null where it stays text
let katex = null;
let loading = null;

// formula is an element for a formula with its signs, such as \(a^2\).
export function formula(raw) {
  const display = !raw.startsWith('\\(');
  const node = el('span', display ? { class: 'math block', tabindex: '0', role: 'group', 'aria-label': 'Formula' } : { class: 'math' }, raw);
  if (raw.length > longest) return node;
  if (katex) set(node, raw, display);
  else load().then(() => set(node, raw, display), () => {});
  return node;
}

function load() {
  loading ??= import('./vendor/katex/katex.min.js').then(() => {
    katex = self.katex;
    probe();
  });
  return loading;
}

// probe looks whether subscripts are set lower: some browsers take that from a mathematical font, and there may be none.
function probe() {
  const box = el('div', { class: 'unseen' });
  katex.render('a_a', box, { output: 'mathml' });
  document.body.append(box);
  const [base, low] = [...box.querySelectorAll('mi')].map((part) => part.getBoundingClientRect().bottom);
  document.documentElement.classList.toggle('no-math-font', !(low > base + 0.5));
  box.remove();
}

function set(node, raw, display) {
  if (!made.has(raw)) {
    if (made.size >= kept) made.delete(made.keys().next().value);
    made.set(raw, mathOf(raw.slice(2, -2), display));
  }
  const math = made.get(raw);
  if (math) node.replaceChildren(math.cloneNode(true));
}

// mathOf is a formula's element. Neither links nor anything else that leads elsewhere is made: trust is off.
function mathOf(tex, display) {
  const box = el('span');
  try {
    katex.render(tex, box, {
      output: 'mathml', displayMode: display, throwOnError: true, strict: 'ignore', trust: false, maxExpand: 500,
      errorColor: 'currentcolor', // of what trust would be needed for, which is written as text
    });
  } catch {
    return null;
  }
  const math = box.querySelector('math');
  return math && depth(math) <= deepest ? math : null;
}

// depth is how many elements lie in one another. It does not call itself: they may be many.
function depth(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT);
  let most = 0;
  let at = 0;
  for (let node = root; node;) {
    most = Math.max(most, at);
    let next = walker.firstChild();
    if (next) at++;
    while (!next) {
      next = walker.nextSibling();
      if (next) break;
      if (!walker.parentNode()) return most;
      at--;
    }
    node = next;
  }
  return most;
}
