import { STATUS_CODES } from 'node:http'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { hasZodFastifySchemaValidationErrors } from 'fastify-type-provider-zod'
import { MusterError } from '../lib/errors.ts'
import type { ProblemReply } from './schemas.ts'

/** Every failure becomes `{ code, message, hint, details }`; what went wrong inside us stays in the log. */
export function sendProblem(error: unknown, request: FastifyRequest, reply: FastifyReply): void {
  const known = asMusterError(error)
  if (known.code === 'INTERNAL') request.log.error({ err: error }, 'request failed')
  const body: ProblemReply = { code: known.code, message: known.message, hint: known.hint, details: [...known.details] }
  if (known.status === 401) void reply.header('www-authenticate', 'Bearer')
  if (known.status === 429) void reply.header('retry-after', '1')
  void reply
    .status(STATUS_CODES[known.status] === undefined ? 400 : known.status)
    .type('application/json')
    .send(body)
}

function asMusterError(error: unknown): MusterError {
  if (error instanceof MusterError) {
    // What broke inside us (a program's output, a path) is for the log, not for whoever calls.
    if (error.code === 'DISK_FULL') return new MusterError('DISK_FULL', 'the disk of the server is full')
    return error.status >= 500 ? new MusterError('INTERNAL', 'something failed inside the server') : error
  }
  if (hasZodFastifySchemaValidationErrors(error)) {
    const details = error.validation.map(
      issue =>
        `${issue.instancePath.replace(/^\//, '').replaceAll('/', '.') || error.validationContext}: ${issue.message}`,
    )
    return new MusterError('REQUEST_INVALID', `the ${error.validationContext ?? 'request'} is not valid`, { details })
  }
  const { code, statusCode, message } = error as Partial<FastifyError>
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return new MusterError('BODY_TOO_LARGE', 'the body is too large')
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
    return new MusterError('REQUEST_INVALID', message ?? 'the request is not valid')
  return new MusterError('INTERNAL', 'something failed inside the server')
}
