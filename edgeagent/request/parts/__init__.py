"""Parts of a request that may be values of arguments: numbers, dates, options, texts."""
