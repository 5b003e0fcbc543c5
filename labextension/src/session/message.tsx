/**
 * One entry of a conversation.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { Button } from '../panel/button';
import { Part } from '../records';
import { Entry, ErrorEntry, MarkEntry, PromptEntry, TextEntry, TurnEntry } from './entries';
import { Markdown } from './markdown';
import { Output } from './output';
import { promptText } from './prompts';
import { Surroundings } from './surroundings';
import { FileChip, FoldLine, ReadCalls, ToolCall } from './tool';
import { failure, firstWords, money, oneLine, tokenCount, took, toolSubject, toolWord } from './words';

/** Longer prompts are folded. */
const LONG_PROMPT = 6_000;

interface Props {
  entry: Entry;
  surroundings: Surroundings;
}

/** Draws again only when its entry is another one. */
export const EntryView = React.memo(function EntryView({ entry, surroundings }: Props): JSX.Element {
  return (
    <div
      className={`ocman-Entry ocman-mod-${entry.kind}`}
      role="article"
      aria-label={entryName(entry, surroundings)}
      tabIndex={-1}
      data-ocman-entry={entry.key}
    >
      <Body entry={entry} surroundings={surroundings} />
    </div>
  );
});

function Body({ entry, surroundings }: Props): JSX.Element {
  const { trans, painter } = surroundings;
  switch (entry.kind) {
    case 'prompt':
      return <Prompt entry={entry} {...surroundings} />;
    case 'text':
      return <Markdown text={entry.part.text ?? ''} live={entry.live} painter={painter} trans={trans} />;
    case 'reasoning':
    case 'summary':
      return <Folded entry={entry} {...surroundings} />;
    case 'tool':
      return <ToolCall part={entry.part} {...surroundings} />;
    case 'reads':
      return <ReadCalls parts={entry.parts} {...surroundings} />;
    case 'file':
      return <FileChip part={entry.part} {...surroundings} />;
    case 'mark':
      return <div className="ocman-Mark">{markText(entry, trans)}</div>;
    case 'error':
      return <Failure entry={entry} {...surroundings} />;
    case 'turn':
      return <div className="ocman-Turn">{turnText(entry, surroundings)}</div>;
  }
}

function Prompt({ entry, ...surroundings }: Surroundings & { entry: PromptEntry }): JSX.Element {
  const { message, queued } = entry;
  const { trans } = surroundings;
  const text = promptText(message);
  return (
    <div className="ocman-Prompt">
      {text.length > LONG_PROMPT ? (
        <Output text={text} side="head" label={trans.__('Prompt')} trans={trans} />
      ) : (
        text && (
          <div className="ocman-Prompt-text" dir="auto">
            {text}
          </div>
        )
      )}
      {message.parts.map(part =>
        part.type === 'file' && !part.synthetic ? (
          <FileChip key={part.id} part={part} {...surroundings} />
        ) : part.type === 'subtask' ? (
          <div key={part.id} className="ocman-Chip" dir="auto">
            {trans.__('Subagent: %1', oneLine(String(part.description ?? part.agent ?? ''), 200))}
          </div>
        ) : null
      )}
      {queued && <span className="ocman-Tag">{trans.__('queued')}</span>}
    </div>
  );
}

/** Thoughts, and the summary that a long conversation goes on from. */
function Folded({ entry, ...surroundings }: Surroundings & { entry: TextEntry }): JSX.Element {
  const { trans, painter } = surroundings;
  const [isOpen, setOpen] = React.useState(false);
  const { part, live, kind } = entry;
  const word = kind === 'summary' ? trans.__('Summary so far') : trans.__('Thoughts');
  const time = part.time as { start?: number; end?: number } | undefined;
  return (
    <div className="ocman-Folded">
      <FoldLine isOpen={isOpen} onToggle={() => setOpen(!isOpen)}>
        <span className="ocman-Folded-name">{live ? trans.__('Thinking…') : word}</span>
        {!isOpen && <bdi className="ocman-Tool-subject">{firstWords((part.text ?? '').slice(0, 400))}</bdi>}
        <span className="ocman-Tool-state">
          {time?.start && time.end ? took(time.end - time.start, trans) : ''}
        </span>
      </FoldLine>
      {isOpen && <Markdown text={part.text ?? ''} live={live} painter={painter} trans={trans} />}
    </div>
  );
}

function Failure({ entry, ...surroundings }: Surroundings & { entry: ErrorEntry }): JSX.Element {
  const { trans, onResend } = surroundings;
  return (
    <FailureCard text={failure(entry.info) ?? ''} onResend={entry.last ? onResend : null} trans={trans} />
  );
}

export function FailureCard(props: {
  text: string;
  onResend: (() => void) | null;
  trans: TranslationBundle;
}): JSX.Element {
  const { text, onResend, trans } = props;
  return (
    <section className="ocman-Card ocman-mod-error" aria-label={trans.__('The turn failed')}>
      <h2>{trans.__('The turn failed')}</h2>
      <Output text={text} side="head" label={trans.__('Error')} trans={trans} />
      {onResend && <Button onClick={onResend}>{trans.__('Retry')}</Button>}
    </section>
  );
}

function markText(entry: MarkEntry, trans: TranslationBundle): string {
  switch (entry.mark) {
    case 'compacted':
      return trans.__('The conversation was shortened: the agent goes on from a summary.');
    case 'stopped':
      return trans.__('Stopped');
    case 'retried':
      return retryText(entry.part, trans);
  }
}

function retryText(part: Part | null, trans: TranslationBundle): string {
  const { attempt, error } = (part ?? {}) as {
    attempt?: unknown;
    error?: { data?: { message?: unknown; statusCode?: unknown } };
  };
  const { message, statusCode } = error?.data ?? {};
  const what = [statusCode, message].filter(said => typeof said === 'string' || typeof said === 'number');
  return trans.__('Model error %1, retried (attempt %2)', oneLine(what.join(' '), 200), Number(attempt) || 1);
}

function turnText(
  { cost, tokens, milliseconds, model }: TurnEntry,
  { trans, showCost }: Surroundings
): string {
  const facts = [
    took(milliseconds, trans),
    tokens ? trans.__('%1 tokens', tokenCount(tokens, trans)) : '',
    cost && showCost ? money(cost) : '',
    model ?? ''
  ];
  return facts.filter(fact => fact).join(' · ');
}

/** What a screen reader says when it comes to an entry. */
function entryName(entry: Entry, { trans, directory }: Surroundings): string {
  switch (entry.kind) {
    case 'prompt':
      return entry.queued ? trans.__('You, queued') : trans.__('You');
    case 'text':
      return trans.__('Agent');
    case 'reasoning':
      return trans.__('Thoughts of the agent');
    case 'summary':
      return trans.__('Summary so far');
    case 'tool': {
      const { part } = entry;
      const subject = oneLine(toolSubject(part, directory), 100);
      return trans.__('%1 %2, %3', part.tool ?? '', subject, toolWord(part.state?.status, trans));
    }
    case 'reads':
      return trans._n('read %1 file', 'read %1 files', entry.parts.length);
    case 'file':
      return trans.__('File');
    case 'mark':
      return markText(entry, trans);
    case 'error':
      return trans.__('The turn failed');
    case 'turn':
      return trans.__('Turn finished');
  }
}
