/**
 * What notifications say, within what Lab shows of them.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { LONGEST, fitted } from '../src/toasts';
import { unshownText } from '../src/unshown';

const trans: any = {
  __: (text: string, ...values: unknown[]) => text.replace(/%(\d)/g, (_, i) => String(values[Number(i) - 1]))
};

test('a long name loses its end, and nothing else is lost', () => {
  const text = (name: string) => `${'x'.repeat(100)} ${name}.`;
  assert.equal(fitted(text, 'short'), text('short'));
  const long = fitted(text, 'y'.repeat(200));
  assert.equal(long.length, LONGEST);
  assert.ok(long.endsWith('y….'));
});

test('why Jupyter does not show a file, and what to do', () => {
  const unshown = (path: string, root: string | null, host = 'local') => unshownText({ path, host }, root, trans);
  const long = `${'loader'.repeat(20)}.py`;
  for (const name of ['load.py', long]) {
    const both = unshown(`/data/.worktrees/lab/fix/${name}`, '/data/lab');
    assert.match(both, /Start it in a folder above .*, with ContentsManager.allow_hidden = True\.$/);
    const hidden = unshown(`/data/.worktrees/lab/fix/${name}`, '/data');
    assert.match(hidden, /hidden, or gone\. Start Jupyter with ContentsManager.allow_hidden = True\.$/);
    const outside = unshown(`/home/.me/other/${name}`, '/home/.me/lab');
    assert.match(outside, /outside of its root directory\. Start Jupyter in a folder above both\.$/);
    const gone = unshown(`/data/${name}`, '/');
    assert.match(gone, /: it is gone, or cannot be read\.$/);
    assert.match(unshown(`/data/.worktrees/${name}`, null), /allow_hidden/);
    assert.match(unshown(`/data/${name}`, '/data', 'far'), /on the host far\.$/);
    for (const text of [both, hidden, outside, gone]) {
      assert.ok(text.length <= LONGEST, text);
      assert.ok(text.includes(name.slice(0, 7)), text);
    }
  }
});
