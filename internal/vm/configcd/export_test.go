package configcd

// AuthorizedKeys is authorizedKeys, for the fuzz test.
var AuthorizedKeys = authorizedKeys
