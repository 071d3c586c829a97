// Package reply checks every message of a node before any other code sees it.
//
// Other people run programs on a node, so its answers may come from an attacker. A gRPC codec
// bounds the number of elements in a message before it decodes the message, and refuses fields that
// the contract does not have. The package then checks each field against the field's rule, and the
// reply against the request. All calls of package node use Options. A test demands a rule for every
// field of every reply, so that a new field cannot be forgotten.
//
// Some violations show only in the sum of many messages: for example, a node may send more bytes of
// a file than it announced. The code that reads the messages detects these violations.
package reply
