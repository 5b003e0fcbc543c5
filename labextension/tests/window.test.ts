/**
 * Which rows of a long list are drawn.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Piece, Sight, pieces, sightOf } from '../src/panel/window';

const LIST: Sight = {
  count: 2200,
  rowHeight: 24,
  tall: new Map(),
  top: 0,
  bottom: 480,
  pinned: new Set()
};

const rows = (found: Piece[]) => found.flatMap(piece => (piece.kind === 'row' ? [piece.index] : []));

const height = (found: Piece[], sight: Sight) =>
  found.reduce(
    (sum, piece) =>
      sum + (piece.kind === 'gap' ? piece.height : (sight.tall.get(piece.index) ?? sight.rowHeight)),
    0
  );

test('only what is in sight is drawn, and the list is as high as if all were', () => {
  for (const top of [0, 13, 24, 12_000, 52_400]) {
    const sight = { ...LIST, top, bottom: top + 480 };
    const found = pieces(sight);
    assert.equal(height(found, sight), 2200 * 24);
    assert.ok(rows(found).length <= 21 && rows(found).length >= 16, `${rows(found).length} rows`);
    assert.equal(rows(found)[0], Math.floor(top / 24));
  }
});

test('the row with the focus stays, above and below what is in sight', () => {
  const sight = { ...LIST, top: 24_000, bottom: 24_480, pinned: new Set([3, 2100]) };
  const found = pieces(sight);
  assert.equal(rows(found)[0], 3);
  assert.equal(rows(found)[rows(found).length - 1], 2100);
  assert.equal(height(found, sight), 2200 * 24);
  assert.equal(found.filter(({ kind }) => kind === 'gap').length, 4);
});

test('a row of another height moves those below it and is never left out', () => {
  const sight = { ...LIST, tall: new Map([[0, 124]]), top: 1000, bottom: 1240 };
  const found = pieces(sight);
  assert.deepEqual(rows(found).slice(0, 2), [0, 37]);
  assert.equal(height(found, sight), 2199 * 24 + 124);
});

test('no rows, and a box without a height', () => {
  assert.deepEqual(pieces({ ...LIST, count: 0 }), []);
  assert.ok(sightOf(0, 0).bottom > 0);
});

test('a short scroll changes nothing that is drawn, a long one does', () => {
  assert.deepEqual(sightOf(250, 600), sightOf(300, 600));
  assert.notDeepEqual(sightOf(250, 600), sightOf(500, 600));
  const { top, bottom } = sightOf(5000, 600);
  assert.ok(top <= 5000 - 240 && bottom >= 5600 + 240);
});
