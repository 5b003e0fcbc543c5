/**
 * Whether the key that is handled now is held down: what sends or allows something wants a press of its own.
 */

let isHeld = false;

// On the window: before the application looks for the command of a key.
window.addEventListener('keydown', event => (isHeld = event.repeat), true);

export function keyIsHeld(): boolean {
  return isHeld;
}
