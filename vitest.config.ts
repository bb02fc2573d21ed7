import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    // The machine may be slow: limits are generous, tests wait for events.
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Tests that need a whole machine to themselves (10,000 connections) must not share it with others.
    maxWorkers: 2,
  },
})
