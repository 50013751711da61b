"""One page of pictures of a lake: no outside host, nothing to be fetched, drawn here."""
