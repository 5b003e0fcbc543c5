/**
 * Tests whose time and promises the test itself moves.
 */
import { mock, test } from 'node:test';

/** Let promises run that are ready. */
export async function settle(): Promise<void> {
  for (let i = 0; i < 30; i++) {
    await Promise.resolve();
  }
}

/** A test after which the clock is the real one again. */
export function check(name: string, body: () => Promise<void>): void {
  test(name, async () => {
    try {
      await body();
    } finally {
      mock.timers.reset();
    }
  });
}

/** A test on a clock that stands still until it is moved. */
export function timed(name: string, body: () => Promise<void>): void {
  check(name, async () => {
    mock.timers.enable({ apis: ['setTimeout', 'Date'], now: 1_000_000 });
    await body();
  });
}
