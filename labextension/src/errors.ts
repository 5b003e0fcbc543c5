/**
 * The errors that the server names, and those of getting to it.
 */

/** An error with the contract's code; told apart by `code`, never by its text. */
export class ApiError extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly hint: string | null = null,
    readonly details: Record<string, unknown> = {}
  ) {
    super(message);
    this.name = 'ApiError';
  }

  /** No answer at all. */
  static unreachable(): ApiError {
    return new ApiError(
      'server_unreachable',
      'The Jupyter server does not answer.',
      'Try again when it is back.'
    );
  }

  /** From an HTTP status and what its body was, if that was JSON. */
  static fromResponse(status: number, body: unknown): ApiError {
    const error = (body ?? {}) as { code?: unknown; message?: unknown; hint?: unknown; details?: unknown };
    if (typeof error.code === 'string') {
      return new ApiError(
        error.code,
        String(error.message || error.code),
        typeof error.hint === 'string' ? error.hint : null,
        (error.details ?? {}) as Record<string, unknown>
      );
    }
    if (status === 401 || status === 403) {
      return new ApiError(
        'unauthorized',
        'The Jupyter server wants you to log in again.',
        'Reload the page.'
      );
    }
    if (status === 404) {
      return new ApiError('extension_missing', 'The ocman server extension does not answer.');
    }
    if (status >= 502 && status <= 504) {
      return ApiError.unreachable();
    }
    const text = typeof error.message === 'string' && error.message ? `: ${error.message}` : '';
    return new ApiError('http_error', `The server answered with status ${status}${text}.`);
  }

  /** Any thrown value as an `ApiError`. */
  static from(reason: unknown): ApiError {
    return reason instanceof ApiError
      ? reason
      : new ApiError('internal', String((reason as Error)?.message ?? reason));
  }
}
