// Package protocol is how agents and daemons say things to each other: versions and their negotiation, framing, the
// envelope, stream headers, roles, the registry of messages, the gate that knows which of them may come when, and the
// codes with which connections and streams end. The normative text is protocols/internal/agent-daemon.md.
//
//	connection  ALPN "forgeyard-agent/1": the framing below; the version is negotiated in Hello
//	  stream    "FY1S" | kind u8 | schema u8 | length u16 | header        then, except for raw object bytes:
//	    frame   body length u32 | type u16 | schema u8 | 00 | body
//	      body  EnvelopeV1 | payload, both Postcard
//
// What the messages hold is said by the packages of the families, agentv1, logv1 and casv1, and here for the four that
// every role uses: Hello, HelloAck, GoAway and Error. A wire struct is named XxxV1. It holds no domain type: it is
// converted at the edge, and the conversion validates. A released wire struct is never edited; a V2 is put beside it.
//
// A peer sends nothing that was not negotiated, so whatever is unknown is a Violation and the decoder stays simple. No
// input makes anything here panic or allocate more than the registry allows for its type.
//
// Pure: it reads from an io.Reader that it is given and knows nothing of what is behind it. No clock, no goroutine.
package protocol
