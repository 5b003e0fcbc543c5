/**
 * What is drawn of a conversation: its entries, long texts in pieces, and how things are called.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { PIECE, excerpt, pieces, slices } from '../src/session/chunks';
import { Entry, entriesOf } from '../src/session/entries';
import { NO_QUEUE } from '../src/session/prompts';
import { fullPath, lastLine, localPath, plain, toolSubject, took } from '../src/session/words';
import { message, part, prompt, tool } from './talk';

const trans = {
  __: (text: string, ...args: unknown[]) => text.replace(/%(\d)/g, (_, n) => String(args[n - 1]))
} as any;

const calm = { queued: NO_QUEUE, isBusy: false };
const kinds = (entries: readonly Entry[]) => entries.map(({ kind }) => kind);

test('reads in a row are one line, also over messages; an error or another tool ends it', () => {
  const entries = entriesOf(
    [
      prompt('m0'),
      message('m1', [tool('t1', 'read', 'completed')]),
      message('m2', [
        part('s', { type: 'step-start' }),
        tool('t2', 'read', 'completed'),
        tool('t3', 'read', 'running')
      ]),
      message('m3', [
        tool('t4', 'read', 'error'),
        tool('t5', 'read', 'completed'),
        tool('t6', 'bash', 'completed')
      ])
    ],
    calm
  );
  assert.deepEqual(kinds(entries), ['prompt', 'reads', 'tool', 'tool', 'tool']);
  assert.deepEqual([entries[1].key, (entries[1] as any).parts.length], ['t1', 3]);
});

test('entries that say the same are the same objects', () => {
  const messages = [
    prompt('m0'),
    message('m1', [
      tool('t1', 'read', 'completed'),
      tool('t2', 'read', 'completed'),
      part('p', { text: 'x' })
    ])
  ];
  const before = entriesOf(messages, calm);
  assert.equal(entriesOf([...messages], calm, before), before);
  const grown = { ...messages[1], parts: [...messages[1].parts.slice(0, 2), part('p', { text: 'xy' })] };
  const after = entriesOf([messages[0], grown], calm, before);
  assert.deepEqual(
    after.map((entry, i) => entry === before[i]),
    [true, true, false]
  );
});

test('a turn ends with what it cost, once it is over', () => {
  const facts = { cost: 0.01, tokens: { input: 100, output: 20, reasoning: 3 }, modelID: 'big' };
  const messages = [
    prompt('m0'),
    message('m1', [part('p1', { text: 'x' })], { ...facts, time: { created: 1000, completed: 2000 } }),
    message('m2', [part('p2', { text: 'y' })], { ...facts, time: { created: 2000, completed: 5000 } })
  ];
  const last = [...entriesOf(messages, calm)].pop() as any;
  assert.deepEqual(
    [last.kind, last.cost, last.tokens, last.milliseconds, last.model],
    ['turn', 0.02, 246, 4000, 'big']
  );
  assert.deepEqual(kinds(entriesOf(messages, { ...calm, isBusy: true })), ['prompt', 'text', 'text']);
  const next = entriesOf([...messages, prompt('m3')], { ...calm, isBusy: true });
  assert.deepEqual(kinds(next), ['prompt', 'text', 'text', 'turn', 'prompt']);
});

test('errors, stops, thoughts, shortening; what nobody wrote is not shown', () => {
  const entries = entriesOf(
    [
      message('m0', [part('a', { text: 'system', synthetic: true })], { role: 'user' }),
      message('m1', [part('b', { type: 'compaction' })], { role: 'user' }),
      message('m2', [part('c', { text: 'so far' })], { summary: true } as any),
      message('m3', [part('d', { type: 'reasoning', text: 'hm' }), part('e', { text: '  ' })], {
        error: { name: 'MessageAbortedError', data: { message: 'x' } }
      }),
      message('m4', [], { error: { name: 'APIError', data: { message: 'no' } } })
    ],
    calm
  );
  assert.deepEqual(kinds(entries), ['mark', 'summary', 'reasoning', 'mark', 'error']);
  assert.equal((entries[4] as any).last, true);
});

// --- texts ---------------------------------------------------------------------------------------

test('pieces are the text, and earlier ones stay as they are while it grows', () => {
  const paragraph = 'word '.repeat(200).trim();
  const code = '```py\n' + 'x = 1\n\n'.repeat(800) + '```';
  const text = [...Array(6).fill(paragraph), code, ...Array(6).fill(paragraph), '- a', '', '- b'].join(
    '\n\n'
  );
  const all = pieces(text);
  assert.equal(all.join(''), text);
  assert.ok(all.length > 3);
  assert.equal(all.filter(piece => piece.includes('```')).length, 1);
  for (let end = 1; end < text.length; end += 97) {
    const some = pieces(text.slice(0, end));
    assert.deepEqual(some.slice(0, -1), all.slice(0, some.length - 1));
  }
  assert.deepEqual(pieces(''), []);
  assert.deepEqual(pieces('x'.repeat(PIECE * 3)), ['x'.repeat(PIECE * 3)]);
});

test('long output is cut at lines, and never through a character', () => {
  const text = Array.from({ length: 1000 }, (_, i) => `line ${i}`).join('\n');
  assert.equal(slices(text, 500).join(''), text);
  assert.ok(slices(text, 500).every(slice => slice.length <= 500));
  assert.equal(excerpt(text, 'tail', 2, 8000), 'line 998\nline 999');
  assert.equal(excerpt(text, 'head', 2, 8000), 'line 0\nline 1\n');
  assert.equal(excerpt('a\nb\n', 'tail', 1, 10), 'b\n');
  const faces = '😀'.repeat(100);
  assert.equal(slices(faces, 7).join(''), faces);
  assert.ok(slices(faces, 7).every(slice => [...slice].every(one => one === '😀')));
  assert.equal(excerpt(faces, 'tail', 5, 3), '😀');
  assert.equal(excerpt(faces, 'head', 5, 3), '😀');
  assert.equal(excerpt('', 'tail', 5, 3), '');
});

test('words: paths, durations, subjects, and what terminals understand', () => {
  assert.equal(localPath('/r/w/src/a.py', '/r/w'), 'src/a.py');
  assert.equal(localPath('/r/wide/a.py', '/r/w'), '/r/wide/a.py');
  assert.equal(fullPath('src/a.py', '/r/w/'), '/r/w/src/a.py');
  assert.deepEqual(
    [10, 850, 3210, 59_960, 125_000, 3_720_000].map(ms => took(ms, trans)),
    ['', '0.8 s', '3.2 s', '1 min 0 s', '2 min 5 s', '1 h 2 min']
  );
  assert.equal(plain('\u001b[31mred\u001b[0m\u0007\r\n'), 'red\n');
  assert.equal(lastLine('a\n\u001b[32mb 50%\rb 60%\n\n'), 'b 60%');
  assert.equal(
    toolSubject(tool('t', 'bash', 'running', { input: { command: 'ls\n -l', description: 'x' } }), ''),
    'ls -l'
  );
  assert.equal(toolSubject(tool('t', 'read', 'running', { input: { filePath: '/r/w/a' } }), '/r/w'), 'a');
  assert.equal(toolSubject(tool('t', 'odd', 'pending'), '/r/w'), '');
});
