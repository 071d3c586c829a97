// Parses PowerShell scripts, and prints each place that the grammar does not accept, and each cmdlet and parameter that
// the table of cmdlets does not have.
//   node powershell.cjs FOLDER-OF-THE-GRAMMAR TABLE FILE…
'use strict';
const fs = require('fs');
const path = require('path');

const [folder, table, ...files] = process.argv.slice(2);
const { Parser, Language } = require(path.join(folder, 'web-tree-sitter.cjs'));

// faults yields the smallest nodes that are wrong.
function* faults(node) {
  const inside = node.children.filter((child) => child && (child.hasError || child.isMissing));
  if (node.isMissing || (node.isError && !inside.some((child) => child.isError || child.isMissing))) {
    yield node;
  }
  for (const child of inside) {
    yield* faults(child);
  }
}

// readTable returns the parameters of each cmdlet by its name in lower case, and the cmdlet's module. "*" has those of all.
function readTable(text) {
  const cmdlets = new Map();
  for (const line of text.split('\n')) {
    const [module, name, ...parameters] = line.trim().toLowerCase().split(/\s+/);
    if (name && !module.startsWith('#')) {
      cmdlets.set(name, { module, parameters: new Set(parameters) });
    }
  }
  return cmdlets;
}

// commands yields each command of a script with its parameters. A command within another, such as in a script block, is a
// command of its own.
function* commands(node) {
  if (node.type === 'command') {
    const name = node.children.find((child) => child && child.type.startsWith('command_name'));
    const parameters = [];
    const collect = (inner) => {
      for (const child of inner.children) {
        if (child.type === 'command_parameter') {
          parameters.push(child);
        } else if (child.type !== 'command' && !/script_block|expression/.test(child.type)) {
          collect(child);
        }
      }
    };
    collect(node);
    yield { name: name || node, parameters };
  }
  for (const child of node.children) {
    yield* commands(child);
  }
}

// functions yields the names of the functions that a script defines, in lower case.
function* functions(node) {
  if (node.type === 'function_statement') {
    const name = node.children.find((child) => child && child.type === 'function_name');
    if (name) {
      yield name.text.toLowerCase();
    }
  }
  for (const child of node.children) {
    yield* functions(child);
  }
}

// strangers yields each name that the table does not have, with the reason. Variables, expressions and programs (with .exe)
// are no cmdlets.
function* strangers(root, cmdlets, defined) {
  for (const { name, parameters } of commands(root)) {
    const text = name.text.toLowerCase();
    if (/^[$("'&.]/.test(text) || text.endsWith('.exe') || defined.has(text)) {
      continue;
    }
    const [module, own] = text.includes('\\') ? text.split('\\') : ['', text];
    const cmdlet = cmdlets.get(own);
    if (!cmdlet || own === '*' || (module && module !== cmdlet.module)) {
      yield { node: name, what: `no cmdlet of scripts/cmdlets.txt: ${name.text}` };
      continue;
    }
    for (const parameter of parameters) {
      const wanted = parameter.text.toLowerCase().replace(/^-|:$/g, '');
      if (!cmdlet.parameters.has(wanted) && !cmdlets.get('*').parameters.has(wanted)) {
        yield { node: parameter, what: `no parameter of ${name.text} in scripts/cmdlets.txt: ${parameter.text}` };
      }
    }
  }
}

async function main() {
  await Parser.init({ locateFile: (name) => path.join(folder, name) });
  const parser = new Parser();
  parser.setLanguage(await Language.load(path.join(folder, 'tree-sitter-powershell.wasm')));
  let found = 0;
  const cmdlets = readTable(fs.readFileSync(table, 'utf8'));
  const trees = new Map(files.map((file) =>
    [file, parser.parse(fs.readFileSync(file, 'utf8').replace(/^\ufeff/, ''))]));
  const defined = new Set([...trees.values()].flatMap((tree) => [...functions(tree.rootNode)]));
  let checked = 0;
  for (const [file, tree] of trees) {
    for (const node of faults(tree.rootNode)) {
      const { row, column } = node.startPosition;
      const what = node.isMissing ? `${node.type} is missing` : `not PowerShell: ${JSON.stringify(node.text.slice(0, 80))}`;
      console.log(`${file}:${row + 1}:${column + 1}: ${what}`);
      found++;
    }
    for (const { node, what } of strangers(tree.rootNode, cmdlets, defined)) {
      const { row, column } = node.startPosition;
      console.log(`${file}:${row + 1}:${column + 1}: ${what}`);
      found++;
    }
    checked += [...commands(tree.rootNode)].length;
    if (tree.rootNode.hasError && found === 0) {
      console.log(`${file}: not PowerShell`);
      found++;
    }
  }
  console.log(`${files.length} scripts, ${checked} commands, ${cmdlets.size - 1} cmdlets in the table, ${found} faults`);
  process.exitCode = found > 0 || files.length === 0 ? 1 : 0;
}

main().catch((err) => {
  console.error(err);
  process.exitCode = 1;
});
