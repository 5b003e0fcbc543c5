import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hasFormula } from '../src/session/formula';

test('formulas are told from money and variables', () => {
  for (const text of ['so $x$ is', '$x_1 + y^2$', 'a $\\alpha$.', '$$\nx\n$$', '\\(a\\)', '\\begin{align}', '$n=3$, then']) {
    assert.ok(hasFormula(text), text);
  }
  for (const text of ['costs $5 to $9', '$5', 'from $HOME to $PATH', '$A/x_$USER', 'US$ 5 - 6 US$', '$5-$9', 'no dollar']) {
    assert.ok(!hasFormula(text), text);
  }
});
