// The only code that adds elements to a page.
//
// Text becomes text nodes and attributes are set by name, so that no message content is ever parsed
// as markup.  Links lead only to our own pages and to http(s).

const SVG = "http://www.w3.org/2000/svg";
const LINKS = new Set(["href", "src", "action", "formaction", "xlink:href"]);
const SAFE_LINK = /^(?:[/?#]|https?:\/\/)/;

export function h(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Replace the children of an element. */
export function replace(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter(isThere).map(asNode));
  return element;
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) set(element, name, value);
  for (const child of children.flat(Infinity)) if (isThere(child)) element.append(asNode(child));
  return element;
}

function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) {
    if (typeof value !== "function") throw new TypeError(`${name} takes a function`);
    element.addEventListener(name.slice(2), value);
  } else if (name === "style" || name === "srcdoc") {
    throw new TypeError(`${name} is not set from here`);
  } else if (LINKS.has(name) && !SAFE_LINK.test(String(value))) {
    element.setAttribute("data-refused", name);
  } else {
    element.setAttribute(name, value === true ? "" : String(value));
  }
}

function isThere(child) {
  return child !== null && child !== undefined && child !== false && child !== "";
}

function asNode(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}
