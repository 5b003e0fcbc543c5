/**
 * Patches read line by line: git's, other programs', and what is none.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fileRows, matchingFiles } from '../src/diff/files';
import { GROUP, countRows, firstRows, groupsOf } from '../src/diff/groups';
import { changedWords, sideBySide, wordMarks } from '../src/diff/pairs';
import { FilePatch, parsePatch } from '../src/diff/patch';
import { fileDiff } from './records';

function one(patch: string): FilePatch {
  const files = parsePatch(patch);
  assert.equal(files.length, 1);
  return files[0];
}

const rows = (patch: FilePatch, at = 0) =>
  patch.hunks[at].lines.map(({ kind, old, new: now, text }) => [kind, old, now, text]);

test('a changed file of git: hunks, sections, and the numbers of both sides', () => {
  const file = one(
    [
      'diff --git a/src/load.py b/src/load.py',
      'index 1..2 100644',
      '--- a/src/load.py',
      '+++ b/src/load.py',
      '@@ -1,3 +1,4 @@',
      ' import os',
      '-a = 1',
      '+a = 2',
      '+b = 3',
      ' end',
      '@@ -10 +11 @@ def load():',
      '-x',
      '+y',
      ''
    ].join('\n')
  );
  assert.deepEqual([file.oldPath, file.newPath, file.status], ['src/load.py', 'src/load.py', 'modified']);
  assert.ok(file.isComplete);
  assert.deepEqual(rows(file), [
    ['context', 1, 1, 'import os'],
    ['removed', 2, null, 'a = 1'],
    ['added', null, 2, 'a = 2'],
    ['added', null, 3, 'b = 3'],
    ['context', 3, 4, 'end']
  ]);
  assert.equal(file.hunks[1].section, 'def load():');
  assert.deepEqual(rows(file, 1), [
    ['removed', 10, null, 'x'],
    ['added', null, 11, 'y']
  ]);
});

test('lines that look like heads are lines where the hunk says so', () => {
  const file = one('--- a/q.sql\n+++ b/q.sql\n@@ -1,2 +1,2 @@\n--- old comment\n+++ new\n @@ -1 +1 @@\n');
  assert.ok(file.isComplete);
  assert.deepEqual(
    file.hunks[0].lines.map(({ kind, text }) => [kind, text]),
    [
      ['removed', '-- old comment'],
      ['added', '++ new'],
      ['context', '@@ -1 +1 @@']
    ]
  );
});

test('files without a line feed at their end', () => {
  const file = one(
    '--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+y\n\\ No newline at end of file\n'
  );
  assert.ok(file.isComplete);
  assert.deepEqual(
    file.hunks[0].lines.map(({ isUnended }) => isUnended),
    [true, true]
  );
});

test('new, deleted, renamed, copied, and mode only', () => {
  const files = parsePatch(
    [
      'diff --git a/n b/n',
      'new file mode 100644',
      'index 0..1',
      '--- /dev/null',
      '+++ b/n',
      '@@ -0,0 +1 @@',
      '+hello',
      'diff --git a/d b/d',
      'deleted file mode 100755',
      '--- a/d',
      '+++ /dev/null',
      '@@ -1 +0,0 @@',
      '-bye',
      'diff --git a/old name.py b/new name.py',
      'similarity index 100%',
      'rename from old name.py',
      'rename to new name.py',
      'diff --git a/run sh b/run sh',
      'old mode 100644',
      'new mode 100755',
      'diff --git a/c b/c2',
      'similarity index 90%',
      'copy from c',
      'copy to c2',
      'diff --git a/empty b/empty',
      'new file mode 100644',
      'index 0..e69de29',
      ''
    ].join('\n')
  );
  assert.deepEqual(
    files.map(({ status, oldPath, newPath, oldMode, newMode, isComplete }) => [
      status,
      oldPath,
      newPath,
      oldMode,
      newMode,
      isComplete
    ]),
    [
      ['added', null, 'n', null, '100644', true],
      ['deleted', 'd', null, '100755', null, true],
      ['renamed', 'old name.py', 'new name.py', null, null, true],
      ['modified', 'run sh', 'run sh', '100644', '100755', true],
      ['copied', 'c', 'c2', null, null, true],
      ['added', null, 'empty', null, '100644', true]
    ]
  );
  assert.equal(files[0].hunks[0].lines[0].new, 1);
});

test('binary files, told or as data', () => {
  const [told, data] = parsePatch(
    'diff --git a/i.png b/i.png\nindex 1..2\nBinary files a/i.png and b/i.png differ\n' +
      'diff --git a/j b/j\nindex 1..2\nGIT binary patch\nliteral 3\nKcmb\n\nliteral 0\nHcmV?d00001\n\n'
  );
  assert.ok(told.isBinary && data.isBinary);
  assert.deepEqual([told.hunks, data.hunks], [[], []]);
});

test('names as git quotes them', () => {
  const file = one(
    'diff --git "a/caf\\303\\251 \\"x\\".py" "b/caf\\303\\251 \\"x\\".py"\n' +
      '--- "a/caf\\303\\251 \\"x\\".py"\n+++ "b/caf\\303\\251 \\"x\\".py"\n@@ -1 +1 @@\n-a\n+b\n'
  );
  assert.equal(file.newPath, 'café "x".py');
  assert.equal(one('--- a/with blank\t2026-01-01\n+++ b/with blank\t\n@@ -1 +1 @@\n-a\n+b\n').newPath, 'with blank');
});

test('a merge: signs of two parents', () => {
  const file = one(
    [
      'diff --cc f.py',
      'index 1,2..3',
      '--- a/f.py',
      '+++ b/f.py',
      '@@@ -1,2 -1,2 +1,6 @@@',
      '++<<<<<<< HEAD',
      ' +ours',
      '++=======',
      '+ theirs',
      '++>>>>>>> other',
      '  end',
      ''
    ].join('\n')
  );
  assert.ok(file.isCombined && file.isComplete);
  assert.deepEqual(rows(file), [
    ['added', null, 1, '<<<<<<< HEAD'],
    ['added', 1, 2, 'ours'],
    ['added', null, 3, '======='],
    ['added', null, 4, 'theirs'],
    ['added', null, 5, '>>>>>>> other'],
    ['context', 2, 6, 'end']
  ]);
});

test("an editing tool's patch: Index, times, and no prefixes", () => {
  const file = one(
    'Index: /r/w/a.py\n===================================================================\n' +
      '--- /r/w/a.py\n+++ /r/w/a.py\n@@ -1,1 +1,1 @@\n-a\n+b\n'
  );
  assert.deepEqual([file.newPath, file.isComplete, file.hunks[0].lines.length], ['/r/w/a.py', true, 2]);
});

test('hunks without numbers are read up to what cannot be one', () => {
  const file = one('--- a/f\n+++ b/f\n@@ class A:\n a\n-b\n+c\n@@\n+d\n');
  assert.deepEqual(
    file.hunks.map(({ section, lines }) => [section, lines.map(({ kind }) => kind)]),
    [
      ['class A:', ['context', 'removed', 'added']],
      ['', ['added']]
    ]
  );
  assert.deepEqual(rows(file)[1], ['removed', null, null, 'b']);
});

test('line ends of Windows stay in the text, and in heads are none', () => {
  const file = one('--- a/f\r\n+++ b/f\r\n@@ -1,2 +1,2 @@\r\n a\r\n-b\r\n+b\n');
  assert.deepEqual(
    [file.newPath, ...file.hunks[0].lines.map(({ text }) => text)],
    ['f', 'a\r', 'b\r', 'b']
  );
});

test('what a mail has around a patch is no part of it', () => {
  const files = parsePatch(
    'From 1\nSubject: x\n---\n f | 2 +-\n\ndiff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n-- \n2.39\n\n'
  );
  assert.equal(files.length, 1);
  assert.ok(files[0].isComplete);
});

for (const [what, patch] of [
  ['too short', '--- a/f\n+++ b/f\n@@ -1,9 +1,9 @@\n a\n-b\n'],
  ['too long', '--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n+c\n'],
  ['cut in a head', '--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n--- a/g\n']
] as const) {
  test(`a hunk that is ${what} is told`, () => {
    assert.equal(parsePatch(patch)[0].isComplete, false);
  });
}

for (const hostile of [
  '',
  '\n',
  '@@',
  '@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@@',
  '@@ -99999999999999999999,1 +1 @@\n a',
  '@@ -1,999999999999 +1,999999999999 @@\n a',
  'diff --git ',
  'diff --git "',
  'diff --git "a\\',
  'diff --cc',
  '--- ',
  '--- \n+++ ',
  '+++ b\n--- a',
  '\\ No newline',
  '--- a\n+++ b\n@@ -1 +1 @@\n\\ No newline at end of file',
  'rename from x',
  '__proto__\n--- __proto__\n+++ __proto__\n@@ -1 +1 @@\n-a\n+b',
  '\u0000\u202e\ud800'
]) {
  test(`hostile text is read without an error: ${JSON.stringify(hostile)}`, () => {
    for (const file of parsePatch(hostile)) {
      file.hunks.forEach(hunk => [wordMarks(hunk), sideBySide(hunk)]);
    }
  });
}

test('long lines and many lines cost no more than their length', () => {
  const wide = 'x'.repeat(5_000_000);
  const long = '@@ -1,300000 +1,300000 @@\n' + '-a b c\n+a d c\n'.repeat(300_000);
  const begin = performance.now();
  const file = one(`--- a/f\n+++ b/f\n@@ -1 +1 @@\n-${wide}\n+${wide}y\n${long}`);
  assert.equal(file.hunks[0].lines[1].text.length, 5_000_001);
  assert.equal(file.hunks[1].lines.length, 600_000);
  file.hunks.forEach(wordMarks);
  // Generous: a quadratic reader needs hours.
  assert.ok(performance.now() - begin < 10_000);
});

test('the words that differ are marked', () => {
  const [before, after] = ['    total = load(path, 3)', '    total = load_all(path, 42)'];
  const found = changedWords(before, after)!;
  const texts = (text: string, at: 0 | 1) => found[at].map(([from, to]) => text.slice(from, to));
  assert.deepEqual([texts(before, 0), texts(after, 1)], [['load', '3'], ['load_all', '42']]);
});

test('lines that are the same, unlike, or very long have no marks', () => {
  assert.equal(changedWords('a', 'a'), null);
  assert.equal(changedWords('import os', 'def f(x): return 2'), null);
  assert.equal(changedWords('a '.repeat(300), 'a '.repeat(299) + 'b'), null);
});

test('a comparison that would be long marks the whole middle', () => {
  const middle = (word: string) => Array.from({ length: 60 }, (_, i) => `${word}${i}`).join(' ');
  const start = 'same '.repeat(33);
  const found = changedWords(start + middle('a'), start + middle('b'));
  assert.deepEqual(
    found?.map(spans => spans.map(([from, to]) => [from, to])),
    [[[start.length, start.length + middle('a').length]], [[start.length, start.length + middle('b').length]]]
  );
});

test('side by side: changed lines stand beside each other, the rest alone', () => {
  const { hunks } = one('--- a/f\n+++ b/f\n@@ -1,4 +1,4 @@\n same\n-a\n-b\n+A\n same\n+new\n');
  assert.deepEqual(
    sideBySide(hunks[0]).map(({ left, right }) => [left?.text ?? null, right?.text ?? null]),
    [
      ['same', 'same'],
      ['a', 'A'],
      ['b', null],
      ['same', 'same'],
      [null, 'new']
    ]
  );
});

test('files as a tree: chains of folders are one row, closed ones hide what is in them', () => {
  const paths = ['z.py', 'src/deep/er/b.py', 'src/deep/er/a.py', 'src/x.py', 'src-2/y.py', 'a.py'];
  const files = matchingFiles(paths.map(path => fileDiff(path)), '');
  const tree = (closed: string[]) =>
    fileRows(files, { isTree: true, closed: new Set(closed) }).map(row => [
      row.depth,
      row.name
    ]);
  assert.deepEqual(tree([]), [
    [0, 'src'],
    [1, 'deep/er'],
    [2, 'a.py'],
    [2, 'b.py'],
    [1, 'x.py'],
    [0, 'src-2'],
    [1, 'y.py'],
    [0, 'a.py'],
    [0, 'z.py']
  ]);
  assert.deepEqual(tree(['src/', 'src-2/']), [
    [0, 'src'],
    [0, 'src-2'],
    [0, 'a.py'],
    [0, 'z.py']
  ]);
});

test('a filter looks at both names and at what became of a file', () => {
  const files = [
    fileDiff('src/new.py', { old_path: 'src/old.py', status: 'renamed' }),
    fileDiff('notes.md', { status: 'untracked' }),
    fileDiff('src/x.py')
  ];
  const found = (filter: string) => matchingFiles(files, filter).map(({ path }) => path);
  assert.deepEqual(found('OLD'), ['src/new.py']);
  assert.deepEqual(found('untr'), ['notes.md']);
  assert.deepEqual(found('src x'), ['src/x.py']);
  assert.deepEqual(found('none'), []);
});

test('rows come in groups, none is lost, and a hunk has one head', () => {
  const many = (sign: string, count: number) => `${sign}x\n`.repeat(count);
  const { hunks } = one(
    `--- a/f\n+++ b/f\n@@ -1,3 +1,2 @@\n a\n-b\n-c\n+d\n@@ -10,400 +9,300 @@\n${many('-', 400)}${many('+', 300)}`
  );
  const groups = groupsOf(hunks, false);
  assert.equal(countRows(groups), 704);
  assert.ok(groups.every(({ rows }) => rows <= GROUP));
  const pieces = groups.flatMap(group => group.pieces);
  assert.deepEqual(
    pieces.flatMap(({ lines }) => lines),
    hunks.flatMap(({ lines }) => lines)
  );
  assert.equal(pieces.filter(({ isFirst }) => isFirst).length, 2);
  const cut = firstRows(groups, 160);
  assert.equal(countRows(cut), 160);
  // A whole group is the same object: what is drawn of it stays.
  assert.equal(cut[0], groups[0]);
  const split = groupsOf(hunks, true);
  assert.equal(countRows(split), 3 + 400);
  assert.ok(split[2].pieces[0].pairs[0].right);
});
