"""What answers the operations of the contract, one file per noun.

HTTP and the in-process client both come through here: records in, records out.
"""
