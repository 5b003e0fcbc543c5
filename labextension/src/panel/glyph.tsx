/**
 * The mark of a status: its shape says it as well as its colour.
 */
import * as React from 'react';
import { SessionStatus } from '../records';

const SHAPES: Record<SessionStatus, React.ReactElement> = {
  idle: <circle cx="8" cy="8" r="3" fill="none" stroke="currentColor" strokeWidth="1.5" />,
  busy: (
    <path d="M8 3a5 5 0 1 1-5 5" fill="none" stroke="currentColor" strokeWidth="2" strokeLinecap="round" />
  ),
  needs_you: (
    <path d="M8 2.5v7M8 12.5v1" fill="none" stroke="currentColor" strokeWidth="2.5" strokeLinecap="round" />
  ),
  error: (
    <path d="M4 4l8 8M12 4l-8 8" fill="none" stroke="currentColor" strokeWidth="2" strokeLinecap="round" />
  ),
  directory_missing: (
    <path
      d="M8 3a5 5 0 1 1 0 10a5 5 0 0 1 0-10M4.5 11.5l7-7"
      fill="none"
      stroke="currentColor"
      strokeWidth="1.5"
    />
  ),
  unknown: (
    <path
      d="M4 8h8"
      fill="none"
      stroke="currentColor"
      strokeWidth="2"
      strokeLinecap="round"
      strokeDasharray="1 3"
    />
  )
};

export function StatusGlyph({ status }: { status: SessionStatus }): JSX.Element {
  return (
    <svg
      className={`ocman-Glyph ocman-mod-${status}`}
      viewBox="0 0 16 16"
      width="14"
      height="14"
      aria-hidden="true"
    >
      {SHAPES[status] ?? SHAPES.unknown}
    </svg>
  );
}
