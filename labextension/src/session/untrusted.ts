/**
 * What is left of HTML that an agent wrote: words and their form.
 *
 * The application's sanitizer takes away what executes.  Here goes what would reach further than the text: attributes
 * that run the application's commands, styles and classes that cover its parts, and images that tell another server
 * that, and what, somebody reads.
 */
import { IRenderMime } from '@jupyterlab/rendermime';

/** The attribute that holds the path of a link to a file. */
export const FILE = 'data-ocman-file';

const TAGS = new Set(
  (
    'a abbr b bdi bdo blockquote br caption cite code dd del details dfn div dl dt em figcaption figure h1 h2 h3 h4 ' +
    'h5 h6 hr i img input ins kbd li mark ol p pre q s samp small span strong sub summary sup table tbody td tfoot ' +
    'th thead tr u ul var wbr'
  ).split(' ')
);

const ATTRIBUTES = new Set(
  'align alt checked class colspan dir disabled height href lang open rowspan src start title type value width'.split(
    ' '
  )
);

/** Of highlighted code. */
const CLASSES = /^(?:language-[\w+#.-]+|cm-[\w-]+|tok-[\w-]+|ͼ\w+)$/;

const WEB = /^(?:https?|mailto):/i;

/** Of these not even the words are kept. */
const DROPPED =
  'script, style, template, noscript, iframe, object, embed, svg, math, select, textarea, audio, video';

/** A sanitizer that leaves what an agent may show. */
export function untrusted(base: IRenderMime.ISanitizer): IRenderMime.ISanitizer {
  return {
    sanitize: (dirty, options) => confine(base.sanitize(withFiles(withWords(dirty)), options)),
    getAutolink: () => false,
    allowNamedProperties: false
  };
}

/** HTML in which a tag that is none here is text: `List<int>` is said of code, and `<script>` of a page. */
export function withWords(html: string): string {
  return html.replace(/<(\/?)([^\s<>/]*)/g, (start, slash, name) =>
    TAGS.has(name.toLowerCase()) ? start : `&lt;${slash}${name}`
  );
}

/** A file and a line: without a folder in front it reads like an address of an unknown scheme. */
const FILE_LINK = /(<a\s[^>]*?href=")([\w.+-]+:\d+(?::\d+)?")/gi;

/** HTML in which such links are paths. */
function withFiles(html: string): string {
  return html.replace(FILE_LINK, '$1./$2');
}

const DIAGRAM = /((?:`{3,}|~{3,})[ \t]*)mermaid\b/gi;

/** Markdown with its diagrams as text: they would be laid out in the page, and their labels load from anywhere. */
export function withoutDiagrams(markdown: string): string {
  return markdown.replace(DIAGRAM, '$1text');
}

/** HTML with nothing in it but words, their form, links to elsewhere and pictures that are part of it. */
export function confine(html: string): string {
  // Nothing in a template loads or runs.
  const template = document.createElement('template');
  template.innerHTML = html;
  const { content } = template;
  content.querySelectorAll(DROPPED).forEach(element => element.remove());
  for (const element of [...content.querySelectorAll('*')]) {
    const tag = element.localName;
    if (!TAGS.has(tag) || (tag === 'input' && element.getAttribute('type') !== 'checkbox')) {
      element.replaceWith(...element.childNodes);
      continue;
    }
    confineAttributes(element);
    if (tag === 'a') {
      confineLink(element);
    } else if (tag === 'img') {
      confineImage(element);
    } else if (tag === 'input') {
      element.setAttribute('disabled', '');
    }
  }
  return template.innerHTML;
}

function confineAttributes(element: Element): void {
  for (const { name } of [...element.attributes]) {
    if (!ATTRIBUTES.has(name)) {
      element.removeAttribute(name);
    }
  }
  const classes = [...element.classList].filter(name => CLASSES.test(name));
  if (classes.length) {
    element.setAttribute('class', classes.join(' '));
  } else {
    element.removeAttribute('class');
  }
}

function confineLink(link: Element): void {
  const href = (link.getAttribute('href') ?? '').trim();
  link.removeAttribute('href');
  if (WEB.test(href)) {
    link.setAttribute('href', href);
    link.setAttribute('target', '_blank');
    link.setAttribute('rel', 'noopener noreferrer nofollow');
    return;
  }
  const path = filePath(href);
  if (path !== null) {
    link.setAttribute(FILE, path);
    link.setAttribute('role', 'link');
    link.setAttribute('tabindex', '0');
  }
}

/** The path that a link without a scheme names, with its line; `null` when it names none. */
function filePath(href: string): string | null {
  const path = href.replace(/^file:\/\//i, '').replace(/[?#](?!L\d+(?:-L?\d+)?$).*$/, '');
  if (!path || path.startsWith('//') || /^[a-z][a-z0-9+.-]*:/i.test(path)) {
    return null;
  }
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

function confineImage(image: Element): void {
  const source = image.getAttribute('src') ?? '';
  if (/^data:image\//i.test(source)) {
    return;
  }
  // Only the words about it stay, as a link where there is one.
  const link = document.createElement('a');
  link.textContent = image.getAttribute('alt') || source;
  link.setAttribute('href', source);
  confineLink(link);
  image.replaceWith(image.closest('a') ? document.createTextNode(link.textContent) : link);
}
