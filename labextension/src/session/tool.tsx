/**
 * A tool call: one line, and what is behind it.
 */
import * as React from 'react';
import { TranslationBundle } from '@jupyterlab/translation';
import { caretDownIcon, caretRightIcon } from '@jupyterlab/ui-components';
import { InlinePatch } from '../diff/inline';
import { Button, Foreign } from '../panel/button';
import { useNow } from '../panel/hooks';
import { Part } from '../records';
import { keyOf } from '../state';
import { Output } from './output';
import { Surroundings } from './surroundings';
import {
  byteSize,
  fullPath,
  lastLine,
  localPath,
  plain,
  took,
  toolPath,
  toolSubject,
  toolWord
} from './words';

/** A command that is longer, or has several lines, is not seen whole in its line. */
const LONG_COMMAND = 60;
/** Lines of a change that are shown in the conversation. */
const PATCH_LINES = 20;

interface Props extends Surroundings {
  part: Part;
}

export function ToolCall(props: Props): JSX.Element {
  const { part, directory, trans } = props;
  const status = part.state?.status;
  const change = React.useMemo(() => changeOf(part), [part]);
  const [chosen, choose] = React.useState<boolean | null>(null);
  const isOpen = chosen ?? (status === 'error' || change !== null);
  const subject = toolSubject(part, directory);
  return (
    <div className={`ocman-Tool ocman-mod-${status ?? 'pending'}`}>
      <FoldLine isOpen={isOpen} onToggle={() => choose(!isOpen)}>
        <span className="ocman-Tool-name">{plain(part.tool ?? '')}</span>
        <Foreign className="ocman-Tool-subject" text={subject} />
        {change && <ChangeCounts change={change} trans={trans} />}
        <ToolState part={part} trans={trans} />
      </FoldLine>
      {status === 'running' && <Running part={part} />}
      {isOpen && <Details {...props} change={change} />}
    </div>
  );
}

/** Several calls that read files, as one line. */
export function ReadCalls(props: Surroundings & { parts: readonly Part[] }): JSX.Element {
  const { parts, directory, trans, onFile } = props;
  const [isOpen, setOpen] = React.useState(false);
  const running = parts.find(({ state }) => state?.status === 'running' || state?.status === 'pending');
  return (
    <div className="ocman-Tool">
      <FoldLine isOpen={isOpen} onToggle={() => setOpen(!isOpen)}>
        <span className="ocman-Tool-name">{trans.__('read')}</span>
        <span className="ocman-Tool-subject">{trans._n('%1 file', '%1 files', parts.length)}</span>
        <ToolState part={running ?? parts[parts.length - 1]} trans={trans} plainTime />
      </FoldLine>
      {isOpen && (
        <ul className="ocman-Tool-files">
          {parts.map(part => (
            <li key={part.id}>
              <FileLink path={toolPath(part)} directory={directory} onFile={onFile}>
                {toolSubject(part, directory)}
              </FileLink>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}

export function FoldLine(props: {
  isOpen: boolean;
  onToggle: () => void;
  children: React.ReactNode;
}): JSX.Element {
  const { isOpen, onToggle, children } = props;
  const Caret = isOpen ? caretDownIcon : caretRightIcon;
  return (
    <button
      type="button"
      className="ocman-FoldLine"
      aria-expanded={isOpen}
      onClick={onToggle}
      data-ocman-fold
    >
      <Caret.react tag="span" className="ocman-Icon" width="16px" height="16px" />
      {children}
    </button>
  );
}

function ToolState(props: { part: Part; trans: TranslationBundle; plainTime?: boolean }): JSX.Element {
  const { part, trans, plainTime } = props;
  const { status, time } = part.state ?? {};
  const word = toolWord(status, trans);
  return (
    <span className={`ocman-Tool-state ocman-mod-${status ?? 'pending'}`}>
      {word}{' '}
      {status === 'running' && time?.start ? (
        <Elapsed since={time.start} trans={trans} />
      ) : (
        !plainTime && time?.start && time.end && took(time.end - time.start, trans)
      )}
    </span>
  );
}

function Elapsed({ since, trans }: { since: number; trans: TranslationBundle }): JSX.Element {
  const now = useNow(1000);
  const seconds = Math.floor((now - since) / 1000);
  return <>{seconds > 0 ? took(seconds * 1000, trans) : ''}</>;
}

/** The last thing that a running tool said. */
function Running({ part }: { part: Part }): JSX.Element | null {
  const output = part.state?.metadata?.output;
  const line = typeof output === 'string' ? lastLine(output) : '';
  return line ? (
    <div className="ocman-Tool-last" dir="auto">
      {line}
    </div>
  ) : null;
}

interface Change {
  patch: string | null;
  /** What was written, where there is no patch. */
  content: string | null;
  additions: number | null;
  deletions: number | null;
}

/** What a tool call changed in files; `null` when it does not say. */
export function changeOf(part: Part): Change | null {
  const { status, input, metadata } = part.state ?? {};
  if (
    status !== 'completed' ||
    !['edit', 'write', 'patch', 'multiedit', 'apply_patch'].includes(part.tool ?? '')
  ) {
    return null;
  }
  const file = metadata?.filediff as
    { additions?: unknown; deletions?: unknown; patch?: unknown } | undefined;
  const found = [metadata?.diff, file?.patch].find(text => typeof text === 'string' && text.trim());
  const patch = typeof found === 'string' ? found : null;
  const content = !patch && typeof input?.content === 'string' ? input.content : null;
  if (!patch && content === null) {
    return null;
  }
  const count = (sign: string, head: string) =>
    patch ? patch.split('\n').filter(line => line.startsWith(sign) && !line.startsWith(head)).length : null;
  return {
    patch,
    content,
    additions: typeof file?.additions === 'number' ? file.additions : count('+', '+++ '),
    deletions: typeof file?.deletions === 'number' ? file.deletions : count('-', '--- ')
  };
}

function ChangeCounts({ change, trans }: { change: Change; trans: TranslationBundle }): JSX.Element | null {
  const { additions, deletions } = change;
  return additions === null || deletions === null ? null : (
    <span
      className="ocman-Tool-counts"
      aria-label={trans.__('%1 lines added, %2 removed', additions, deletions)}
      role="img"
    >
      +{additions} −{deletions}
    </span>
  );
}

function Details(props: Props & { change: Change | null }): JSX.Element {
  const { part, change, directory, trans, host, onFile, onDiff, onSession } = props;
  const { input = {}, output, error, status, metadata } = part.state ?? {};
  const path = toolPath(part);
  const command = typeof input.command === 'string' ? input.command : null;
  const isLong = command !== null && (command.length > LONG_COMMAND || command.includes('\n'));
  const child = metadata?.sessionId ?? metadata?.sessionID;
  const live = typeof metadata?.output === 'string' ? metadata.output : '';
  const said = status === 'running' ? live : (output ?? '');
  return (
    <div className="ocman-Tool-details">
      {isLong && <Output text={command} side="head" label={trans.__('Command')} trans={trans} />}
      {path && (
        <FileLink path={path} directory={directory} onFile={onFile}>
          {localPath(path, directory)}
        </FileLink>
      )}
      {command === null && !path && <Input input={input} trans={trans} />}
      {typeof child === 'string' && (
        <Button onClick={() => onSession(keyOf(host, child))}>
          {trans.__('Open the subagent’s session')}
        </Button>
      )}
      {status === 'error' && error && (
        <div className="ocman-Warning ocman-mod-error">
          <Output text={error} side="head" label={trans.__('Error')} trans={trans} />
        </div>
      )}
      {change?.patch ? (
        <InlinePatch patch={change.patch} maxLines={PATCH_LINES} trans={trans} />
      ) : change?.content ? (
        <Output text={change.content} side="head" label={trans.__('Written')} trans={trans} />
      ) : (
        said && (
          <Output
            text={said}
            side={part.tool === 'bash' ? 'tail' : 'head'}
            label={trans.__('Output of %1', part.tool ?? '')}
            trans={trans}
          />
        )
      )}
      {(part.state?.attachments ?? []).map((file, i) => (
        <FileChip key={i} {...props} part={file} />
      ))}
      {change && <Button onClick={onDiff}>{trans.__('Open full diff')}</Button>}
    </div>
  );
}

/** What a tool was given, when it is neither a command nor a file. */
function Input({
  input,
  trans
}: {
  input: Record<string, unknown>;
  trans: TranslationBundle;
}): JSX.Element | null {
  const text = React.useMemo(() => {
    const entries = Object.entries(input);
    return entries.length ? JSON.stringify(input, null, 2) : '';
  }, [input]);
  return text ? <Output text={text} side="head" label={trans.__('Input')} trans={trans} /> : null;
}

export function FileLink(props: {
  path: string | null;
  directory: string;
  onFile: (path: string) => void;
  children: string;
}): JSX.Element {
  const { path, directory, onFile, children } = props;
  if (path === null) {
    return <bdi>{children}</bdi>;
  }
  return (
    <button
      type="button"
      className="ocman-LinkButton ocman-FileLink"
      title={path}
      onClick={() => onFile(fullPath(path, directory))}
    >
      <bdi>{children}</bdi>
    </button>
  );
}

/** A file that came with a prompt or out of a tool. */
export function FileChip({ part, trans, ...rest }: Surroundings & { part: Part }): JSX.Element {
  const { mime, filename, url } = part as { mime?: unknown; filename?: unknown; url?: unknown };
  const address = typeof url === 'string' ? url : '';
  const name = typeof filename === 'string' && filename ? filename : trans.__('file');
  // Only what is in the message itself is shown: nothing is loaded from elsewhere.
  if (
    typeof mime === 'string' &&
    /^image\/(?:png|jpeg|gif|webp)$/.test(mime) &&
    /^data:image\//.test(address)
  ) {
    return <img className="ocman-Image" src={address} alt={name} />;
  }
  const path = /^file:\/\//.test(address) ? pathOf(address) : null;
  return path ? (
    <FileLink path={path} directory={rest.directory} onFile={rest.onFile}>
      {localPath(path, rest.directory)}
    </FileLink>
  ) : (
    <span className="ocman-Chip">
      <bdi>{name}</bdi> {address.startsWith('data:') && byteSize(Math.round(address.length * 0.75), trans)}
    </span>
  );
}

function pathOf(address: string): string | null {
  try {
    return decodeURIComponent(new URL(address).pathname);
  } catch {
    return null;
  }
}
