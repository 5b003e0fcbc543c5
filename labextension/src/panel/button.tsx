/**
 * The small parts that everything in the panel is made of.
 */
import * as React from 'react';
import { LabIcon } from '@jupyterlab/ui-components';

type Plain = Omit<React.ButtonHTMLAttributes<HTMLButtonElement>, 'className' | 'type' | 'disabled'>;

/**
 * A button with words.
 *
 * `mood`: `accept` for what one usually wants, `warn` for what stops something.  `blocked`: does nothing now, and keeps the focus.
 */
export function Button({
  mood,
  blocked = false,
  onClick,
  ...rest
}: Plain & { mood?: 'accept' | 'warn'; blocked?: boolean }): JSX.Element {
  return (
    <button
      {...rest}
      type="button"
      className={`ocman-Button${mood ? ` ocman-mod-${mood}` : ''}`}
      aria-disabled={blocked}
      onClick={blocked ? undefined : onClick}
    />
  );
}

/** A button with an icon alone; `label` is its name and its tooltip. */
export function IconButton({
  icon,
  label,
  busy,
  className = '',
  ...rest
}: Plain & { icon: LabIcon; label: string; busy?: boolean; className?: string }): JSX.Element {
  return (
    <button
      {...rest}
      type="button"
      className={`ocman-IconButton${busy ? ' ocman-mod-spinning' : ''} ${className}`.trim()}
      title={label}
      aria-label={label}
    >
      <icon.react tag="span" className="ocman-Icon" width="16px" height="16px" />
    </button>
  );
}

/** A name or path that someone else chose: its direction and its marks stay inside. */
export function Foreign({ text, className }: { text: string; className?: string }): JSX.Element {
  return (
    <bdi className={className} title={text}>
      {text}
    </bdi>
  );
}

/** An error where it happened: what, and what to do next. */
export function ErrorText({ error }: { error: { message: string; hint: string | null } }): JSX.Element {
  return (
    <div className="ocman-Error" role="alert">
      <span dir="auto">{error.message}</span>{' '}
      {error.hint && (
        <span className="ocman-Error-hint" dir="auto">
          {error.hint}
        </span>
      )}
    </div>
  );
}
