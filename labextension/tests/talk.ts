/**
 * Messages for the tests, as short as a test wants them.
 */
import { Message, MessageInfo, MessagePage, Part } from '../src/records';

export function part(id: string, facts: Partial<Part> = {}): Part {
  return { id, messageID: 'm', sessionID: 'a', type: 'text', ...facts };
}

export function message(id: string, parts: Part[] = [], facts: Partial<MessageInfo> = {}): Message {
  return { info: { id, sessionID: 'a', role: 'assistant', time: { created: 1 }, ...facts }, parts };
}

export function prompt(id: string, text = id): Message {
  return message(id, [part(`${id}p`, { text })], { role: 'user' });
}

export function tool(id: string, name: string, status: string, facts: object = {}): Part {
  return part(id, { type: 'tool', tool: name, state: { status, ...facts } as any });
}

export const done = { created: 1, completed: 2 };
export const page = (messages: Message[], next: string | null = null): MessagePage => ({ messages, next });
export const ids = (log: { messages: readonly Message[] }) => log.messages.map(({ info }) => info.id);
export const numbered = (from: number, to: number) =>
  Array.from({ length: to - from }, (_, i) =>
    message(`m${String(from + i).padStart(4, '0')}`, [], { time: done })
  );
