// Answers, for each request on standard input, what IAM would say: a thin layer over a policy simulator.
//
// In: [{ policies: [policy…], resourcePolicy: policy, cases: [{ principal, action, resource, context, expected }] }]
// Out: [[answer…]…], an answer being allow, deny, or an error's text; with stopAtFirst up to the first
// unexpected one.
// The simulator (@cloud-copilot/iam-simulate, AGPL-3.0) is a development tool: it is called, never shipped.

import { runSimulation } from '@cloud-copilot/iam-simulate'
import { readFileSync } from 'node:fs'

// A key's usual policy: the account decides by IAM.
const keyPolicy = (account) => ({
  Version: '2012-10-17',
  Statement: [{ Effect: 'Allow', Principal: { AWS: `arn:aws:iam::${account}:root` }, Action: 'kms:*', Resource: '*' }],
})

const accountOf = (arn) => arn.split(':')[4] || '123456789012'

async function ask({ policies = [], resourcePolicy }, { principal, action, resource, context = {} }) {
  const answer = await runSimulation(
    {
      request: {
        action,
        principal,
        resource: { resource, accountId: resource === '*' ? '123456789012' : accountOf(resource) },
        contextVariables: context,
      },
      identityPolicies: policies.map((policy, index) => ({ name: `policy-${index}`, policy })),
      serviceControlPolicies: [],
      resourceControlPolicies: [],
      resourcePolicy: action.startsWith('kms:') ? keyPolicy(accountOf(resource)) : resourcePolicy,
    },
    {},
  )
  if (answer.resultType === 'error') return `error: ${action} on ${resource}: ${JSON.stringify(answer.errors).slice(0, 300)}`
  return answer.overallResult === 'Allowed' ? 'allow' : 'deny'
}

const answers = []
for (const question of JSON.parse(readFileSync(0, 'utf8'))) {
  const row = []
  for (const one of question.cases) {
    row.push(await ask(question, one))
    if (row.at(-1) !== one.expected && question.stopAtFirst) break
  }
  answers.push(row)
}
process.stdout.write(JSON.stringify(answers))
