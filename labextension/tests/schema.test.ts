/**
 * The keys that the settings hold.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { CommandIDs } from '../src/command_names';

interface Shortcut {
  command: string;
  keys: string[];
  selector: string;
}

const schema = JSON.parse(readFileSync(join(__dirname, '../../../schema/panel.json'), 'utf8'));
const shortcuts: Shortcut[] = schema['jupyter.lab.shortcuts'];

test('every key that the pages speak of is a shortcut that can be changed', () => {
  const keys = (start: string) =>
    shortcuts
      .filter(({ selector }) => selector.startsWith(start))
      .map(({ keys, command }) => `${keys.join(' ')}: ${command.replace('ocman:', '')}`);
  assert.deepEqual(keys('.ocman-Session'), ['Alt 1: allow-once', 'Alt 2: allow-always', 'Alt 3: reject-ask']);
  assert.deepEqual(keys('.ocman-Composer'), ['Accel Enter: send-message', 'Escape: focus-messages']);
  assert.deepEqual(keys('.ocman-Dock'), ['Escape: focus-messages']);
  assert.deepEqual(keys('.ocman-Transcript'), [
    'Escape: focus-text',
    'J: next-message',
    'K: previous-message',
    'E: toggle-message'
  ]);
  assert.deepEqual(keys('.ocman-Diff'), [
    'J: next-file',
    'K: previous-file',
    'N: next-change',
    'P: previous-change'
  ]);
});

test('shortcuts are of commands that there are, one for each key at a place', () => {
  const known: string[] = Object.values(CommandIDs);
  for (const { command, selector } of shortcuts) {
    assert.ok(known.includes(command), command);
    // The application takes no lists of selectors.
    assert.ok(!selector.includes(','), selector);
  }
  const places = shortcuts.map(({ keys, selector }) => `${keys} ${selector}`);
  assert.equal(new Set(places).size, places.length);
});
