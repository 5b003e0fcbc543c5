import assert from 'node:assert/strict';
import { test } from 'node:test';
import { withWords } from '../src/session/untrusted';

test('a tag that is none is text, and what is one stays', () => {
  assert.equal(withWords('<p>List<int> and x</p>'), '<p>List&lt;int> and x</p>');
  assert.equal(withWords('<path>a</path>'), '&lt;path>a&lt;/path>');
  assert.equal(withWords('<SCRIPT>x</SCRIPT>'), '&lt;SCRIPT>x&lt;/SCRIPT>');
  assert.equal(withWords('<!-- gone --><?php ?>'), '&lt;!-- gone -->&lt;?php ?>');
  assert.equal(withWords('<IMG src=x><br/><h1 id="a">'), '<IMG src=x><br/><h1 id="a">');
  assert.equal(withWords('<a title="<b <int>">'), '<a title="<b &lt;int>">');
});
