"""Operations of MLIR's dialect `memref` of which xDSL has no text."""
