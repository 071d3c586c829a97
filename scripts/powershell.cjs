// Parses PowerShell scripts and prints each place that the grammar does not accept.
//   node powershell.cjs FOLDER-OF-THE-GRAMMAR FILE…
'use strict';
const fs = require('fs');
const path = require('path');

const [folder, ...files] = process.argv.slice(2);
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

async function main() {
  await Parser.init({ locateFile: (name) => path.join(folder, name) });
  const parser = new Parser();
  parser.setLanguage(await Language.load(path.join(folder, 'tree-sitter-powershell.wasm')));
  let found = 0;
  for (const file of files) {
    const tree = parser.parse(fs.readFileSync(file, 'utf8').replace(/^\ufeff/, ''));
    for (const node of faults(tree.rootNode)) {
      const { row, column } = node.startPosition;
      const what = node.isMissing ? `${node.type} is missing` : `not PowerShell: ${JSON.stringify(node.text.slice(0, 80))}`;
      console.log(`${file}:${row + 1}:${column + 1}: ${what}`);
      found++;
    }
    if (tree.rootNode.hasError && found === 0) {
      console.log(`${file}: not PowerShell`);
      found++;
    }
  }
  console.log(`${files.length} scripts, ${found} faults`);
  process.exitCode = found > 0 || files.length === 0 ? 1 : 0;
}

main().catch((err) => {
  console.error(err);
  process.exitCode = 1;
});
