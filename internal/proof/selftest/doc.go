// Package selftest tries on one real node what swdt promises, and reports the answer to each
// promise. It is meant for nodes that the authors of swdt do not have: the report of a real Windows
// shows how it differs from the stand-ins that swdt is tested on.
//
// A promise is a Claim. It has a grade, which says how trying it changes the node, and a function
// that tries it. Everything that claims make has a name of its own (see artifact.go), so that a run
// removes at its end what it has made, and at its beginning what an earlier run could not remove.
//
//   - claim.go: the type Claim; claims.go: the list of all claims
//   - run.go: a run; trial.go: what claims work with; program.go: the throw-away program
//   - artifact.go: what claims make, and their removal
//   - machine.go, look.go, files.go, programs.go, settings.go, services.go, push.go, cut.go, desktop.go,
//     reboot.go: the claims
//   - report.go, text.go, page.go: the report; redact.go: keeps names out of it
//   - standin.go: the answers of the stand-ins; compare.go: differences of two reports
//   - seen.go: the page of contributed reports, which the command seenon writes
package selftest
