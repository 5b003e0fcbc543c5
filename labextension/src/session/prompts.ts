/**
 * What people wrote, and what of it still waits.
 */
import { Message } from '../records';

/** Messages that wait behind a running turn, as ids. */
export type Queue = ReadonlySet<string>;

export const NO_QUEUE: Queue = new Set();

/** What a person wrote in a message. */
export function promptText(message: Message): string {
  return message.parts
    .filter(part => part.type === 'text' && !part.synthetic && !part.ignored)
    .map(part => part.text ?? '')
    .join('\n')
    .trim();
}

/** The prompts that came while a step still runs for an earlier one; `before` itself when they are the same. */
export function queuedIn(messages: readonly Message[], before: Queue): Queue {
  let at = messages.length - 1;
  while (at >= 0 && messages[at].info.role !== 'assistant') {
    at -= 1;
  }
  const running = messages[at]?.info;
  const parent = running?.parentID;
  if (!running || running.time?.completed || running.error || typeof parent !== 'string') {
    return before.size ? NO_QUEUE : before;
  }
  const waiting = messages
    .filter(({ info }) => info.role === 'user' && info.id > parent)
    .map(({ info }) => info.id);
  return waiting.length === before.size && waiting.every(id => before.has(id)) ? before : new Set(waiting);
}
