// Package ssh connects your machine to a Windows node: it finds the route, checks the host keys,
// logs in and keeps the connection alive. Commands and SFTP then share that connection. If the
// machine limits the sessions of a connection, they use further connections (further.go).
//
//   - route.go: the hops that the node file and ~/.ssh/config describe
//   - config.go: reads ~/.ssh/config
//   - dial.go: connecting hop after hop, each bounded in time
//   - hostkey.go: the check that the machine that answered is the intended one
//   - auth.go, keys.go, keyring.go: logging in
//   - client.go, process.go: sessions on the connection
//   - errors.go: one type for each cause, each with its remedy
//
// Package ssh sends no credentials and no commands to a machine before the machine's host key is
// trusted. Package node handles everything that is specific to Windows.
package ssh
